"""A curator at work on releases: its driver, its uploads, its tests of the server, what it states."""
