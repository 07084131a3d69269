# Imported by columns, commands, console, party, release; may import peers, planning, linkage and what is below.
"""How curators learn which rows of the hub are of their own people: obliviously, by tokens, or by linking."""
