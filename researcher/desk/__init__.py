# Imported by cli; may import report, receiving and what is below.
"""A researcher's service: it takes releases through their steps, and answers its readers."""
