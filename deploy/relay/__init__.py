"""The relay: a meeting point for connections that parties opened themselves."""
