# Imported by curator, deploy, researcher; may import process, relay and what is below.
"""Work in parts that this process, the machine's cores or a cluster perform."""
