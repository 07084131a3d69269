# Imported by cli, console, deploy; may import release and what is below.
"""What a curator can show afterwards: evidence for an auditor, and its audit log for people."""
