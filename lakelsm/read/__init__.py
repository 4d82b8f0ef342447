"""Reads carried out: what tasks merge, and the DataFrames that users get."""
