"""The forms of a report: terminal, mail, Markdown, CSV, JSON."""
