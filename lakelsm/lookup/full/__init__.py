"""Full caches: all rows of a table in cache generations that follow its changes."""
