# Imported by client, commands, linkage_errors, numbers, play, questions, report, survival; may import estimates and
# what is below.
"""Analyses of a table: conditional shares, contrasts, totals, comparisons, regressions, each with its interval."""
