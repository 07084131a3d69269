# Imported by demos, linkage, studies; imports no other room.
"""Registers of made people without a common number, and the truth: who is who."""
