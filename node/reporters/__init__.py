"""One node that reports, or thousands."""
