"""What comes to a desk: published columns and keys, decrypted, tested and counted."""
