"""A node: one value, reported through local randomisation with a sampling probability."""
