"""Notices to the people in charge: what is said (`events`), kept until it is sent (`outbox`), and how (`channels`)."""
