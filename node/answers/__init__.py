# Imported by cli, reporters; imports no other room.
"""An answer of a node: decided once, kept, sent until it is counted."""
