"""A release: what is asked for, what is made of it, where it stands, and how it travels."""
