"""Privacy accounting: what a release reveals, to whom, as upper bounds."""
