# Imported by party, play; may import records and what is below.
"""The server's work on a release: it receives columns, perturbs them once, and shows canaries."""
