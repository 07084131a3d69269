"""Pages on the loopback interface: the frame of every console."""
