"""The commands of a curator's officer."""
