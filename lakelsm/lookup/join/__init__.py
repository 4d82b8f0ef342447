"""Lookup joins: facts get the rows of their keys from the caches of the tasks' processes."""
