"""What a system is, and what differs between two."""
