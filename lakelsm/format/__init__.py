"""The on-disk format, as bytes and dataclasses: one module for each kind of file or encoding."""
