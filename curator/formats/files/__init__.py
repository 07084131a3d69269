"""Tables in files: text, JSON, Parquet, Arrow, spreadsheets."""
