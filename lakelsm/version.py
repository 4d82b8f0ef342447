"""The version of lakelsm, once: the package, the command and the snapshots that are written all take it from here."""

from __future__ import annotations

VERSION = "0.1.0.dev0"
