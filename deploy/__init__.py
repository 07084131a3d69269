"""What brings the parties together: the command line, certificates, the demo and ready studies."""
