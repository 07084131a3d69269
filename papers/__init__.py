"""Replays of the papers' experiments, from the modules that the services use."""
