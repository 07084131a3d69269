"""A study run here with dummy tables, before any data is touched."""
