"""Sketches need a package that is not available for every Python."""

from __future__ import annotations

from importlib.util import find_spec


def sketches_installed() -> bool:
    """Return whether the package ``datasketches`` is installed, which theta_sketch and hll_sketch need."""
    return find_spec("datasketches") is not None
