"""A model of all attributes, fitted to the noisy tables of a release: numpy alone, and nothing but post-processing."""
