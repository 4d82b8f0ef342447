"""Lookup stores: immutable files on this machine's disk that answer which row has a key."""
