# Imported by cli; may import rehearsal and what is below.
"""The demonstrations: a table, linked data, a collection, a server that cheats."""
