# Imported by analysis, api, client, collection, commands, deploy, desk, frequency, linkage_errors, microdata,
# numbers, play, questions, report, survival; may import model, drawing and what is below.
"""From counted noisy rows to a table with intervals."""
