"""Proposes a curator's part of a study from its own table; a person confirms it."""
