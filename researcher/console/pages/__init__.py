"""The pages of a researcher's console."""
