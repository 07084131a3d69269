"""Canaries and what they show of the server: plans, tests, receipts."""
