"""What a desk keeps of its releases.

Imported by desk, parties, receiving; imports no other room.
"""
