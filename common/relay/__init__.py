# Imported by command, deploy; may import rpc and what is below.
"""Connections through a relay or a proxy: a party's forwarder, and the lines that it exchanges with a relay."""
