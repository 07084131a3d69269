"""The demonstration of linking: two registers without a common number, released beside the truth."""
