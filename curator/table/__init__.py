"""A curator's own table: Arrow columns become ids and symbols in one pass, and lie on disk while the curator runs."""
