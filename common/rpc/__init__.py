# Imported by command, curator, deploy, node, observe, play, process, relay, researcher, server, tasks, web; may
# import release, collection and what is below.
"""gRPC over mutual TLS: channels, servers, authorisation and the error table."""
