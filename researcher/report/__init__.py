"""Pages that show results: of a release, and of microdata."""
