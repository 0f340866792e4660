"""Results that others measured: rows of runs, devices, and whether to believe them."""
