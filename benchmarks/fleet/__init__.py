"""What many hosts say together, on simulated fleets."""
