# Imported by collection, command, curator, deploy, node, play, relay, release, researcher, rpc, server; may import
# schemes, linkage, oblivious and what is below.
"""The study file: who takes part, and what the categories are."""
