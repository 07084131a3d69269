"""Collection from thousands of nodes with one value each: what they send, what is counted, how good the result is."""
