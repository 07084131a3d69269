"""The commands of `veiltab researcher`, beside those of rounds.

Imported by cli; may import client, desk, collection and what is below.
"""
