"""What a curator can show afterwards: evidence for an auditor, and its audit log for people."""
