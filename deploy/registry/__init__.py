# Imported by operate; may import pki and what is below.
"""A release certificate as a draft for OpenDP's registry of deployments of differential privacy."""
