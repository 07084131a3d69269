# Imported by cli, party; may import officer and what is below.
"""Notices to the people in charge: what is said (`events`), kept until it is sent (`outbox`), and how (`channels`)."""
