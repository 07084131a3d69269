# Imported by questions, report; may import numbers and what is below.
"""Time to an event: survival curves, log-rank tests, restricted means and Cox regression."""
