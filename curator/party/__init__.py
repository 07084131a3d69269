"""A curator as a process: its RPCs, its observation, and what runs them."""
