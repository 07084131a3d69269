# Imported by cli, play; imports no other room.
"""A study's certificates: the authority, and every party's key and certificate."""
