"""What is true about an experiment, comparison, search, attribution, reproduction or import; how it looks is above."""
