"""Lookups: the row, or the rows, that a table has for a key; kept at hand, and fresh as the table changes."""
