"""Conversions between protocol messages and domain objects; what comes in is validated totally."""
