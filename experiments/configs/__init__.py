"""One short config a figure or table."""
