# Imported by api, client, commands, play, report; may import questions and what is below.
"""Rows of a model that anybody may analyse, and how far from the truth what they say may be."""
