"""All parties put together: the command line, certificates, the demo and ready studies."""
