# Imported by alignment, budget, columns, console, notify, officer, party, peers, planning, play, release; may import
# audit, progress and what is below.
"""What a curator keeps, a file a subject: releases, decisions, coins, pads, what it serves with."""
