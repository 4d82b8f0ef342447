"""Queries in this process, on DuckDB."""
