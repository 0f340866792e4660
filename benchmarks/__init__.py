"""Benchmarks: run from the repository, each with one command; none is installed."""
