"""Runs an experiment: guard, schedule, journal, progress, stop rule, and the way back to the machine as it was."""
