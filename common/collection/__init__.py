"""Collection from thousands of nodes with one value each: reports, counts, and their expected accuracy."""
