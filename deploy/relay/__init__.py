# Imported by cli; may import registry and what is below.
"""The relay: a meeting point for connections that parties opened themselves."""
