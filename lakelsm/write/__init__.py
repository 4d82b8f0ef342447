"""Writes: rows to buckets, batches to level-0 files, and the commit of them."""
