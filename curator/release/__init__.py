# Imported by evidence, party; may import notify, check and what is below.
"""A curator at work on releases: its driver, its uploads, its tests of the server, what it states."""
