"""Exact numbers: counts, sums of logarithms, rounding that never flatters."""
