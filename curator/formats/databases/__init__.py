"""Tables in databases: queries of PostgreSQL, SQLite and DuckDB that only read."""
