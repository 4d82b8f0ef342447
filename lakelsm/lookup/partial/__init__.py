"""Partial caches: stores of the data files that lookups have needed so far."""
