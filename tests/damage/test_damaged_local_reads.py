"""Damaged files are read in this process by the table's calls: the right answer, or an error that names the file."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.table import Table
from tests.chance import FUZZ_EXAMPLES, seeds
from tests.damage.damages import DAMAGES, flip_bit
from tests.damage.samples import SAMPLES, batch, build
from tests.engines import plain_rows

#: Seeds of trials; `make fuzz` uses other and more seeds.
_TRIALS = seeds(16, FUZZ_EXAMPLES)
_WHERE = "v > 'b' OR n = 21 OR n IS NULL"


def rows(table: Table, **more: Any) -> list[str]:
    return sorted(map(repr, plain_rows(table.to_arrow(**more))))


def found(table: Table) -> list[str]:
    return rows(table, where=_WHERE, columns=["id", "v"])


def in_key_order(table: Table) -> list[str]:
    """Return the rows in the order of the stream."""
    with table.to_reader(ordered=True, fresh=True) as reader:
        return [repr(tuple(row.values())) for rows in reader for row in rows.to_pylist()]


def counted(table: Table) -> int:
    return int(table.count(_WHERE, engine="local"))


def changes(table: Table) -> list[str]:
    return sorted(map(repr, plain_rows(table.changelog_reader(mode="diff").read_all())))


def audited(table: Table) -> list[str]:
    return sorted(map(repr, plain_rows(table.inspect.system("audit_log").to_arrow())))


def deleted(table: Table) -> int | None:
    return table.delete(_WHERE, engine="local").matched_rows


QUESTIONS: dict[str, Callable[[Table], Any]] = {
    "rows": rows,
    "found": found,
    "in key order": in_key_order,
    "counted": counted,
    "changes": changes,
    "audited": audited,
}
#: Operations that change the table: run last, on tables that support deletes.
CHANGED = {"changelog": deleted, "indexed": deleted, "dynamic": deleted, "vectors": deleted}


def verdict(ask: Callable[[Table], Any], root: Path, file: Path, expected: Any) -> str:
    """Return the outcome of one question to a table with a damaged file."""
    try:
        answer = ask(Table.for_path(str(root)))
    except CorruptTableError as error:
        return "refused" if str(file) in str(error) else f"another file than {file} is named: {error}"
    return "right" if answer == expected else f"silent: {answer} instead of {expected}"


@pytest.mark.property
def test_a_damaged_data_file_gives_no_wrong_answer(tmp_path: Path) -> None:
    questions = {name: QUESTIONS | ({"deleted": CHANGED[name]} if name in CHANGED else {}) for name in SAMPLES}
    answers = {}
    for name in SAMPLES:
        build(tmp_path / name, SAMPLES[name]).append(batch(40, 9, "f", (4,)))
        whole = shutil.copytree(tmp_path / name, tmp_path / "whole" / name)
        answers[name] = {question: ask(Table.for_path(str(whole))) for question, ask in questions[name].items()}
    counts: Counter[str] = Counter()
    faults = []
    for number in _TRIALS:
        chance, name = Random(number), list(SAMPLES)[number % len(SAMPLES)]
        root = tmp_path / "trial"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(tmp_path / name, root)
        file = chance.choice(sorted(root.rglob("data-*.parquet")))
        others = [other.read_bytes() for other in sorted(root.rglob("data-*.parquet")) if other != file]
        damage = flip_bit if number % 3 == 0 else chance.choice(DAMAGES)
        data = damage(file.read_bytes(), others, chance)
        file.unlink()
        if data is not None:
            file.write_bytes(data)
        for question, ask in questions[name].items():
            said = verdict(ask, root, file, answers[name][question])
            counts[said[:7]] += 1
            if said not in ("right", "refused"):
                faults.append(f"trial {number}, {damage.__name__} of {name}, {question}: {said[:300]}")
    assert not faults, "\n".join(faults)
    assert counts["refused"] and counts["right"]
