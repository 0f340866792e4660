"""How quickly ``iodelta serve`` answers many people at once."""
