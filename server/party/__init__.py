# Imported by cli; may import https and what is below.
"""The server as a process: its RPCs, its observation, and what runs them."""
