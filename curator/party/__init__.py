"""A curator as a process: its RPCs, its observation, and what runs them.

Imported by cli; may import evidence and what is below.
"""
