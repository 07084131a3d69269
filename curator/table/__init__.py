# Imported by alignment, check, columns, linkage, officer, party, peers, release; may import audit, progress and what
# is below.
"""A curator's own table: Arrow columns become ids and symbols in one pass, and lie on disk while the curator runs."""
