"""A researcher: asks, fetches, decrypts, estimates, reports."""
