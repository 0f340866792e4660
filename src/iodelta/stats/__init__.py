"""Statistics: pure functions, numbers in and frozen results out; no I/O, every seed explicit."""
