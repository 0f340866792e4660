"""What bisect and attribute found."""
