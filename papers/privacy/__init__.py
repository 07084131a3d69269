"""The accounts of the papers: what sampling, secret order and repetition are worth for any mechanism."""
