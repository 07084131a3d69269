"""Reading a curator's own table: one pass over its source, checked, coded and written to disk."""
