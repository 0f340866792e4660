"""Layouts of a story: terminal, mail, Markdown, HTML, CSV."""
