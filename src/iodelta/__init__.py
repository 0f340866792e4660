"""iodelta: did this change make my I/O slower or faster, by how much, how sure is that, where and why."""

__version__ = "0.1.0"
