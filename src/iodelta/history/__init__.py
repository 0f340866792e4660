"""Many experiments over time: their points in a database that can be rebuilt, and the steps in them."""
