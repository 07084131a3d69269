"""A release: its request, its spec, its state, and their messages."""
