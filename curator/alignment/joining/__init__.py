"""The one-sided join: a spoke learns which rows of the hub are of its own people, and nobody learns anything else."""
