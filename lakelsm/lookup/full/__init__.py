"""Full caches: every row that lookups may ask for, kept at hand in generations that follow the table's changes."""
