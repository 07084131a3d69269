# Imported by cli; may import answers and what is below.
"""One node that reports, or thousands."""
