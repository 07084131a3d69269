# Imported by client, commands, questions, report; may import survival and what is below.
"""Estimates of linked tables when some of the links are wrong."""
