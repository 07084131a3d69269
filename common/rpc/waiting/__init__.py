"""Waiting for others, and asking several at once."""
