"""Executes writes: assigns rows to buckets, writes batches to level-0 files, and repeats them after a lost race."""
