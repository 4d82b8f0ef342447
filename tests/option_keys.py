"""Options as keyword arguments of tests."""

from __future__ import annotations

from collections.abc import Mapping


def option_keys(given: Mapping[str, str]) -> dict[str, str]:
    """Return options by their keys: ``merge_engine`` becomes 'merge-engine', ``sequence__field`` 'sequence.field'."""
    return {name.replace("__", ".").replace("_", "-"): text for name, text in given.items()}
