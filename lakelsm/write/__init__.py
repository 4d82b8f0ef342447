"""Writes carried out: rows to buckets, batches to level-0 files, and the redo after a lost race."""
