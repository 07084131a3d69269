# Imported by party; may import rounds and what is below.
"""Reports of nodes over HTTPS, for clients that cannot do mutual TLS."""
