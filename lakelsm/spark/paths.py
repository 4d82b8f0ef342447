"""Paths as Spark's readers take them."""

from __future__ import annotations

import re

_PATTERN_CHARACTERS = re.compile(r"([{}\[\]*?\\])")


def literal_path(path: str) -> str:
    """Return the local path as a pattern that means it alone: Spark takes each path for a glob pattern.

    With its scheme, as Spark looks for one without on ``fs.defaultFS``.
    """
    return "file:" + _PATTERN_CHARACTERS.sub(r"\\\1", path)
