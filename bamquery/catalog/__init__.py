"""Names to sources: tables, views, files, and the tables that describe the database."""
