"""What machines, what hours, and what breaks first: `veiltab plan scale`."""
