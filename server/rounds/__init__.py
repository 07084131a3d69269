# Imported by https, party; may import release and what is below.
"""Rounds of collection at the server: it spends tokens at most once and counts reports, and nothing links the two."""
