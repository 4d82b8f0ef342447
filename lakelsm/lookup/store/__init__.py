"""Lookup stores: immutable files on this machine's disk that find rows by key."""
