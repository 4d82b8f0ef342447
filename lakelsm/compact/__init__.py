"""Compaction carried out: the rewrite task, the compactor, and the compaction that follows a write."""
