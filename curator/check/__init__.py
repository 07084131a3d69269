"""What a curator learns of its own table before anyone else is involved: a report and a draft of its part."""
