# Imported by command, curator, deploy, play, researcher, rpc, server; may import privacy, study and what is below.
"""A release: its request, its spec, its state, and their messages."""
