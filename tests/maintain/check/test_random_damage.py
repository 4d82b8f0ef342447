"""Files of any kind are damaged at random. A check reports every damage that makes a read fail or return other rows."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lakelsm.errors import LakelsmError
from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.maintain.check.table_check import CheckScope, check_table
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.snapshots.table_store import TableStore
from tests.damage.damages import DAMAGES
from tests.damage.samples import SAMPLES, Answer, SampleTable, build, questions
from tests.damage.trial import kind_of
from tests.examples import examples


@cache
def sound(folder: Path, name: str) -> tuple[Path, dict[str, Answer]]:
    """Return a sample and the answers of its reads."""
    table = build(folder / "sound" / name.replace(" ", "-"), SAMPLES[name])
    return table.root, {question: ask(table) for question, ask in questions(name).items()}


@examples(12)
@given(name=st.sampled_from(sorted(SAMPLES)), seed=st.integers(0, 2**32))
def test_damage_that_changes_an_answer_is_found(
    tmp_path_factory: pytest.TempPathFactory, name: str, seed: int
) -> None:
    chance = Random(seed)
    template, answers = sound(tmp_path_factory.getbasetemp(), name)
    root = tmp_path_factory.mktemp("damaged") / "t"
    shutil.copytree(template, root)
    kinds: dict[str, list[Path]] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        kinds.setdefault(kind_of(path), []).append(path)
    kind = chance.choice(sorted(kinds.keys() - {"schema"}))  # Another schema may be as legal (docs/integrity.md).
    path = chance.choice(kinds[kind])
    damaged = chance.choice(DAMAGES)(path.read_bytes(), [o.read_bytes() for o in kinds[kind] if o != path], chance)
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    result = check_table(TableStore.open(str(root)), CheckScope(data=CheckedData.FULL), LocalRunner())
    event(f"{kind}: {'sound' if result.ok else result.findings[0].rule}")
    for question, ask in questions(name).items():
        try:
            same = ask(SampleTable(root)) == answers[question]
        except LakelsmError:
            same = False
        newest_lost = kind == "snapshot" and damaged is None  # As after a rollback.
        assert same or not result.ok or newest_lost, f"{question} of {path}: {result.as_text()}"
    shutil.rmtree(root)
