# Imported by cli; may import evidence and what is below.
"""A curator as a process: its RPCs, its observation, and what runs them."""
