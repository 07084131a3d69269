"""Measures what a row and a report cost on this machine, and what a study takes then."""
