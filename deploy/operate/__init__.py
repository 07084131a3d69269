"""Looking at parties that run: status, health, traces, configuration, certificates and evidence."""
