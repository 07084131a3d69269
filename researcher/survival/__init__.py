"""Time to an event: survival curves, log-rank tests, restricted means and Cox regression."""
