"""Frequencies from sampled reports of single values: estimators, their exact errors, intervals."""
