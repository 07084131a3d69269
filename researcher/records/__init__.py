# Imported by desk, parties, receiving; imports no other room.
"""What a desk keeps of its releases."""
