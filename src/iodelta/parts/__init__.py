"""What the core can do without: each folder here is one part, and its ``PART`` says what it brings (``iodelta.part``)."""
