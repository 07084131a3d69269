"""Frequencies from sampled reports of single values: estimators, their exact errors, intervals.

Imported by collection, play; may import estimates and what is below.
"""
