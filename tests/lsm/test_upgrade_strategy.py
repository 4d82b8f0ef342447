"""The work of a compaction on an upgraded file, for each of Paimon's rules."""

from __future__ import annotations

import pytest

from lakelsm.lsm.upgrade_strategy import UpgradeStrategy, upgrade_strategy
from lakelsm.options import TableOptions
from tests.lsm.planning_files import file

TOP = 5
NOTHING, CHANGELOG, BOTH = UpgradeStrategy.NOTHING, UpgradeStrategy.CHANGELOG, UpgradeStrategy.CHANGELOG_AND_REWRITE

LOOKUP = {"changelog-producer": "lookup"}
FULL = {"changelog-producer": "full-compaction"}
VECTORS = {"deletion-vectors.enabled": "true"}
FORCED = {"force-lookup": "true"}
SEQUENCE = {"sequence.field": "s"}
PARTIAL = {"merge-engine": "partial-update"}
AGGREGATION = {"merge-engine": "aggregation"}
FIRST = {"merge-engine": "first-row"}

#: Options, the file's level, the output level, the file's retractions (None: unknown), and the strategy.
RULES: list[tuple[dict[str, str], int, int, int | None, UpgradeStrategy]] = [
    # No look-up and no changelog.
    ({}, 0, TOP, 1, NOTHING),
    ({}, 0, 3, 0, NOTHING),
    (PARTIAL, 0, 3, 0, NOTHING),
    ({"changelog-producer": "input"}, 0, TOP, 0, NOTHING),
    # full-compaction: only the output level counts.
    (FULL, 0, TOP, 0, CHANGELOG),
    (FULL, 0, TOP, None, CHANGELOG),
    (FULL, 4, TOP, 0, CHANGELOG),
    (FULL, 0, 4, 0, NOTHING),
    # Look-up, first rule: not from level 0.
    (LOOKUP, 1, TOP, 1, NOTHING),
    (VECTORS, 4, TOP, None, NOTHING),
    (FIRST, 3, 4, 0, NOTHING),
    # Second: vectors, and the file has or may have retractions.
    (VECTORS, 0, TOP, 1, BOTH),
    (VECTORS, 0, TOP, None, BOTH),
    (VECTORS, 0, 3, 1, BOTH),
    (VECTORS | LOOKUP, 0, TOP, 1, BOTH),
    (LOOKUP, 0, TOP, 1, CHANGELOG),
    # Third: to the top level.
    (LOOKUP, 0, TOP, 0, CHANGELOG),
    (VECTORS, 0, TOP, 0, CHANGELOG),
    (VECTORS | SEQUENCE, 0, TOP, 0, CHANGELOG),
    (LOOKUP | PARTIAL, 0, TOP, None, CHANGELOG),
    (VECTORS | AGGREGATION, 0, TOP, 0, CHANGELOG),
    (FIRST, 0, TOP, 0, CHANGELOG),
    # Fourth: deduplicate without a sequence field.
    (LOOKUP, 0, 3, 0, CHANGELOG),
    (LOOKUP, 0, 3, 1, CHANGELOG),
    (VECTORS, 0, 1, 0, CHANGELOG),
    (FORCED, 0, 3, None, CHANGELOG),
    # Otherwise both.
    (LOOKUP | SEQUENCE, 0, 3, 0, BOTH),
    (VECTORS | SEQUENCE, 0, 3, 0, BOTH),
    (FORCED | PARTIAL, 0, 3, 0, BOTH),
    (VECTORS | PARTIAL, 0, 3, 0, BOTH),
    (VECTORS | AGGREGATION, 0, 4, 0, BOTH),
    (FIRST, 0, 3, 0, BOTH),
]


def _name(value: object) -> str | None:
    if isinstance(value, dict):
        return "+".join(f"{key}={text}" for key, text in value.items()) or "plain"
    return value.name if isinstance(value, UpgradeStrategy) else None


@pytest.mark.parametrize(("options", "level", "output", "deletes", "expected"), RULES, ids=_name)
def test_an_upgraded_file_gets_the_strategy_of_the_rules(
    options: dict[str, str], level: int, output: int, deletes: int | None, expected: UpgradeStrategy
) -> None:
    moving = file(1, 9, level=level, delete_rows=deletes)
    assert upgrade_strategy(TableOptions.parse(options), moving, output, TOP) is expected
