# Imported by alignment, columns, evidence, party, release; may import budget and what is below.
"""A curator's questions to its peers: progress, coins, and who masks whose ids."""
