"""The card of a release, of one table or of several."""
