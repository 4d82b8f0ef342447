"""Compaction: planned from metadata, rewritten in Spark tasks under a memory bound, committed all or nothing."""
