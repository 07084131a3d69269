# Imported by desk; may import microdata, parties and what is below.
"""What comes to a desk: published columns and keys, decrypted, tested and counted."""
