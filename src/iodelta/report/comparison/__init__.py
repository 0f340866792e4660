"""Two sets of runs beside each other."""
