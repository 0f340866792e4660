"""Each kind of result as a story: answer, tables and sections, which every format lays out."""
