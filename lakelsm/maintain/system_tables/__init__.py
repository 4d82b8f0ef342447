"""Paimon's system tables: what is in a table, told by its metadata, each as an Arrow table of Paimon's columns."""
