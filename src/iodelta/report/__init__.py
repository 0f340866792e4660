"""Verdicts as a reader wants them: console first; other formats beside it."""
