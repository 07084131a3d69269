# Imported by client, commands, desk, microdata, play, report; imports no other room.
"""What a desk shows: how a release stands, and who asked for what."""
