"""What a party keeps on disk."""
