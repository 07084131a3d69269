# Imported by cli, play; may import registry and what is below.
"""Looking at parties that run: status, configuration, certificates and evidence."""
