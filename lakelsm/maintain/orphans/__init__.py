"""Orphan files, which no retained state of a table names, and their removal."""
