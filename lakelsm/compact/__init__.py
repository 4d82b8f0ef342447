"""Executes compactions: the compactor, its rewrite task, and the compaction that follows a write."""
