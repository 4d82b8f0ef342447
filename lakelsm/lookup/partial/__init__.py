"""Partial caches: data files made into lookup stores when lookups first touch them."""
