"""Pages that show results: of a release, and of microdata.

Imported by api, commands, play; may import microdata, parties and what is below.
"""
