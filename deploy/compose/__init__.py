"""Every party in a container of its own: the image, the networks, and the check that they do what they promise."""
