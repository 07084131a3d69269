"""Private alignment: an intersection by Diffie-Hellman, so that a curator learns of no other id than its own."""
