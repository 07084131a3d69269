"""Experiments on simulated data: their randomness protects nobody, so numpy's generators will do, here only."""
