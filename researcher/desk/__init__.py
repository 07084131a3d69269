"""A researcher's service: it takes releases through their steps, and answers its readers."""
