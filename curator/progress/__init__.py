"""A release at one curator as a pure state machine: its next step, what it waits for, how it ends."""
