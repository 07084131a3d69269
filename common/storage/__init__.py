# Imported by command, curator, deploy, node, relay, release, researcher, rpc, server, study, tasks, web; may import
# extras and what is below.
"""What a party keeps on disk."""
