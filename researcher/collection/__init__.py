"""A researcher's rounds of collection: open, enrol, close, estimate, report."""
