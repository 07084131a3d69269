"""Looking at parties that run: status, configuration, certificates and evidence."""
