"""The demonstrations: a table, linked data, a collection, a server that cheats."""
