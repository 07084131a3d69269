# Imported by api, commands, play; may import report, receiving and what is below.
"""The Python client of a desk."""
