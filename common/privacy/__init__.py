# Imported by collection, curator, deploy, play, release, researcher, rpc, web; may import schemes, linkage, oblivious
# and what is below.
"""Privacy accounting: upper bounds on what a release reveals to each adversary."""
