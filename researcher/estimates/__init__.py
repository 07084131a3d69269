"""From counted noisy rows to a table with intervals."""
