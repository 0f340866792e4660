"""Programs that iodelta builds from the distribution's own sources, kept in the user's cache."""
