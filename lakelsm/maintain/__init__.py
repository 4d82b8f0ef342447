"""Maintenance of a table: expiry, orphan removal, partitions, versions, checks, statistics, and the record of runs."""
