"""The pages of a curator's console."""
