"""What a curator keeps, a file a subject: releases, decisions, coins, pads, what it serves with."""
