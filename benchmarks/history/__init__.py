"""Alerts of a history against rules that others publish, on the same simulated nights."""
