"""Looking at parties that run: status, health, configuration, certificates and evidence."""
