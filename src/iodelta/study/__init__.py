"""What is true about an experiment, comparison, search, attribution, reproduction or import, before any layout."""
