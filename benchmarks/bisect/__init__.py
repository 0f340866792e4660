"""Searches of simulated histories: iodelta beside the published rules of other tools."""
