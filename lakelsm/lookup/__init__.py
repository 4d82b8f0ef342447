"""Lookups: the row or rows of a key, from caches that follow the table."""
