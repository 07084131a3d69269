# Imported by budget, console, evidence, linkage, records; may import formats and what is below.
"""The audit log: what happened at a curator, as a chain that nobody can change unseen."""
