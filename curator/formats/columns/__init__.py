"""Columns of a source as batches of texts, whatever their types, and the refusals of those that cannot be read."""
