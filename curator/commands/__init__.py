"""The commands of a curator's officer.

Imported by cli; may import party and what is below.
"""
