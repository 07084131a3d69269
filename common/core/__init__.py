# Imported by collection, command, curator, deploy, linkage, node, oblivious, observe, play, privacy, release,
# researcher, rpc, schemes, server, study, tasks, web; may import extras and what is below.
"""The pure core: alphabets, the mechanism, pads, samples, coins; no protocol, no database, no files."""
