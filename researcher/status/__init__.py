"""What a desk shows: how a release stands, and who asked for what."""
