"""Lookup joins: rows of Spark (facts) joined with rows from caches in the tasks' processes."""
