"""Rounds that are played before any node is asked."""
