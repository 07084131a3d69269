# Imported by node, play, researcher, server; may import privacy, study and what is below.
"""Collection from thousands of nodes with one value each: reports, counts, and their expected accuracy."""
