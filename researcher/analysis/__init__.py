"""Analyses of a table: conditional shares, contrasts, totals, comparisons, regressions, each with its interval."""
