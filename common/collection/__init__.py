"""Collection from thousands of nodes with one value each: reports, counts, and their expected accuracy.

Imported by node, play, researcher, server; may import privacy, study and what is below.
"""
