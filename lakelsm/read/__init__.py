"""Reads: a plan from metadata, and the DataFrame that carries it out."""
