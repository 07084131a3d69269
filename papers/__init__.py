"""What the papers compute: accounts of any mechanism on a sample, and their experiments again."""
