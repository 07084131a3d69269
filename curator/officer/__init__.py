# Imported by cli, commands, console, evidence, notify, party, play, release; may import columns and what is below.
"""Who decides what: policy, persons, verdicts, and requests as people see them."""
