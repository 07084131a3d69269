"""A node: it holds one value, randomises it and reports it with a sampling probability."""
