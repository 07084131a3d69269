# Imported by cli, console, deploy; may import officer and what is below.
"""What a curator learns of its own table before anyone else is involved: a report and a draft of its part."""
