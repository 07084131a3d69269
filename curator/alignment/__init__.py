"""How curators find their common respondents: tokens of ids that they compare, or a private intersection."""
