"""What a curator has spent and may spend: the ledger, the rule that admits a release, what coalitions face."""
