"""What a desk keeps of its releases."""
