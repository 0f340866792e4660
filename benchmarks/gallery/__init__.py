"""What fio-plot draws, drawn from the same files."""
