# Imported by alignment, check, cli, commands, console, deploy, linkage, party, play, table; imports no other room.
"""Reads a curator's own table, whatever holds it: each kind of source gives its header and batches of Arrow columns."""
