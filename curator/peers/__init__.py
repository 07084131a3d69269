"""A curator's questions to its peers: progress, coins, and who masks whose ids."""
