# Imported by release; may import alignment and what is below.
"""A column of a release before it leaves: the secret sample, the noise, the canaries and the pad."""
