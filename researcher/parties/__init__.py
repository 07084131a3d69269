# Imported by desk, receiving; may import questions and what is below.
"""The questions of a desk to curators and server, and when it asks again."""
