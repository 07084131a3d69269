"""Reports of nodes over HTTPS, for clients that cannot do mutual TLS."""
