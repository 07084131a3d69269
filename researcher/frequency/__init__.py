# Imported by collection, play; may import estimates and what is below.
"""Frequencies from sampled reports of single values: estimators, their exact errors, intervals."""
