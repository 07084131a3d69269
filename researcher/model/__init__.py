# Imported by client, desk, estimates, linkage_errors, microdata, play, report; may import records, status and what is
# below.
"""A model of all attributes, fitted to the noisy tables of a release: numpy alone, and nothing but post-processing."""
