"""HTTPS of a party: the port, TLS, and what a connection may do."""
