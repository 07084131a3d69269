# Imported by cli; may import party and what is below.
"""The commands of a curator's officer."""
