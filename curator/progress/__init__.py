# Imported by alignment, console, evidence, officer, party, peers, planning, records, release; may import formats and
# what is below.
"""A release at one curator as a pure state machine: its next step, what it waits for, how it ends."""
