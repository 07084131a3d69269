"""Every party in a container of its own: the image, the networks and the mounts."""
