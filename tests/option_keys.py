"""Options as keyword arguments of tests."""

from __future__ import annotations

from collections.abc import Mapping


def option_keys(given: Mapping[str, str]) -> dict[str, str]:
    """``merge_engine`` is 'merge-engine', and ``sequence__field`` 'sequence.field'."""
    return {name.replace("__", ".").replace("_", "-"): text for name, text in given.items()}
