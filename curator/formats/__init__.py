"""Reads a curator's own table, whatever holds it: each kind of source gives its header and batches of Arrow columns."""
