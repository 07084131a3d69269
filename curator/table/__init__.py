"""A curator's own table while it runs: respondents, ids and tokens, coded columns."""
