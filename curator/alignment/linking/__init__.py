"""Linking: rows of the same people in tables without a common number, found key by key, privately or by tokens."""
