# Imported by api, commands, play; may import microdata, parties and what is below.
"""Pages that show results: of a release, and of microdata."""
