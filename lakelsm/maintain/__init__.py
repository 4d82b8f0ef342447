"""Maintenance of a table: expiry, orphan removal, partitions, versions, checks, statistics, and the history of runs."""
