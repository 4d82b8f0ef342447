"""Bytes and dataclasses of the on-disk format: one module for each kind of file or encoding."""
