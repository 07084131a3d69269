# Imported by deploy, play; may import report, receiving and what is below.
"""A researcher's rounds of collection: open, enrol, close, estimate, report."""
