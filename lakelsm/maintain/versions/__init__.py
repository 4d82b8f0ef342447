"""Versions of a table: tags, branches, rollback, and consumers that hold them."""
