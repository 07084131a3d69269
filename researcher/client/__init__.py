"""The Python client of a desk."""
