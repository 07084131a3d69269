# Imported by alignment, commands, console; may import budget and what is below.
"""What a curator knows after it was linked with the others."""
