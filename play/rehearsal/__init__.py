# Imported by compose, deploy; may import local, studies and what is below.
"""A study run here with dummy tables, before any data is touched."""
