"""Releases as messages, and the ledgers that others have seen."""
