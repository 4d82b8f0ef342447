"""Versions of a table: tags, branches, rollback, and consumers, which keep snapshots from expiry."""
