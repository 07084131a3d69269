"""Measurements: what a step costs a row, against the plain way to do it."""
