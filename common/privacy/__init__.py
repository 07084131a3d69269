"""Privacy accounting: upper bounds on what a release reveals to each adversary."""
