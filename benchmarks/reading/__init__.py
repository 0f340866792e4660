"""How much of what people have can be read, and how fast."""
