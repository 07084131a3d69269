"""A column of a release before it leaves: the secret sample, the noise, the canaries and the pad."""
