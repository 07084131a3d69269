# Imported by alignment, commands, console, deploy, evidence, notify, officer, party, peers, planning, release; may
# import records, table and what is below.
"""What a curator has spent and may spend: the ledger, the rule that admits a release, what coalitions face."""
