"""Measures the unit costs of `veiltab plan scale` on this machine."""
