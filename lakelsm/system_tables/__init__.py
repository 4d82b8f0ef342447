"""Paimon's system tables and lakelsm's own: the metadata of a table as Arrow tables."""
