"""How a value becomes a category."""
