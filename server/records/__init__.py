# Imported by party, release, rounds; may import sharing and what is below.
"""What the server keeps: sessions in a database, and columns as files in its folder."""
