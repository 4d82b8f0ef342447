"""Aggregate functions by family: each folds the events of a column into one value for each key."""
