"""Reports of results: what they say (``stories``), and how it is laid out (``formats``)."""
