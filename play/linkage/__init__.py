# Imported by cli; may import rehearsal and what is below.
"""The demonstration of linking: two registers without a common number, released beside the truth."""
