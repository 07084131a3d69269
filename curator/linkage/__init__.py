"""What a curator knows after it was linked with the others."""
