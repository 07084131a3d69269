"""Estimates of linked tables when some of the links are wrong."""
