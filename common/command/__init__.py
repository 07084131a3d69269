# Imported by curator, deploy, node, observe, play, researcher, server, web; may import process, relay and what is
# below.
"""Code that all commands share: options, output, errors, running a party, and anew after SIGHUP."""
