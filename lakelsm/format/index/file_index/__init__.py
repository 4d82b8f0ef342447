"""Paimon's indexes of one data file: a container, bloom filters and bitmaps (docs/format.md 7.4)."""
