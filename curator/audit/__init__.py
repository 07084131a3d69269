"""What a curator can show afterwards: its log of decisions and of keys given, and evidence for an auditor."""
