"""What the server keeps: sessions in a database, and columns as files in its folder."""
