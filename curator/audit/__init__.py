"""The audit log: what happened at a curator, as a chain that nobody can change unseen."""
