# Imported by cli; may import client, desk, collection and what is below.
"""The commands of `veiltab researcher`, beside those of rounds."""
