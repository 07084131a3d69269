"""Sampling schemes: how a respondent comes into a sample, and how often."""
