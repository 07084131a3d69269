"""All parties as processes on one machine."""
