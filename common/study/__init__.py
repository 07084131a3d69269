"""The study file: who takes part, and what the categories are."""
