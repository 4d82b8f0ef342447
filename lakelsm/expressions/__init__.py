"""Expressions of SQL on DuckDB: their tokens, names, types, operators and functions, and DuckDB's settings and errors."""
