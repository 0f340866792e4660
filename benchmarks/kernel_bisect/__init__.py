"""Commits with planted slow-downs on top of a real kernel source, and a bisection of them by real builds and boots."""
