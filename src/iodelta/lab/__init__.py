"""Runs an experiment: guard, schedule, journal, progress, stop rule, and the restoring of every setting."""
