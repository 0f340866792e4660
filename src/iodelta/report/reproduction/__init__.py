"""Two experiments of one question beside each other: there and here."""
