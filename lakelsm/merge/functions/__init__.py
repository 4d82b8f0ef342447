"""Aggregate functions by family: events of a column in, one value a key out."""
