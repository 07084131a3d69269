# Imported by cli; may import registry and what is below.
"""Answers before anything runs: error, sample size, privacy and charge of what may be asked."""
