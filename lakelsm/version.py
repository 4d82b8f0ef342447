"""The version of lakelsm, as used by the package, the command line and the snapshots that it writes."""

from __future__ import annotations

VERSION = "0.1.0.dev0"
