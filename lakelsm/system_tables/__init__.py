"""Paimon's system tables and lakelsm's own: the content of a table's metadata as Arrow tables."""
