"""One trial: a file in a copy of a table is damaged. The copy is read, written and compacted; answers are compared."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from lakelsm.errors import LakelsmError
from tests.damage.damages import DAMAGES
from tests.damage.samples import SAMPLES, Answer, SampleTable, batch, questions
from tests.time_limit import time_limit

_KINDS = ("manifest-list", "index-manifest", "manifest", "snapshot", "schema", "tag", "changelog", "index", "data")

#: The maximum time of one step in seconds.
_PATIENCE = 300


class _TookTooLongError(BaseException):
    """A step takes too long."""


@dataclass(frozen=True)
class Sample:
    """An undamaged table, its files by kind, and its answers before and after a write and a compaction."""

    name: str
    root: Path
    kinds: Mapping[str, Sequence[Path]]
    before: Mapping[str, Answer]
    after: Mapping[str, Answer]


@dataclass(frozen=True)
class Finding:
    """The outcome of one step of a trial: 'right', 'refused', or a fault."""

    verdict: str
    step: str
    said: str = ""


def prepare(folder: Path, name: str, build: Callable[[Path, Mapping[str, str]], SampleTable]) -> Sample:
    """Build a sample and record its answers."""
    root = folder / name
    table = build(root, SAMPLES[name])
    by_name = questions(name)
    before = {question: ask(table) for question, ask in by_name.items()}
    copy = _copied(root, folder / f"{name}-written")
    change(copy)
    after = {question: ask(copy) for question, ask in by_name.items()}
    files = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    kinds: dict[str, list[Path]] = {}
    for path in files:
        kinds.setdefault(kind_of(path), []).append(path)
    return Sample(name, root, kinds, before, after)


def kind_of(path: Path) -> str:
    """Return the kind of a file by its path in the table."""
    name = path.name
    if name in ("LATEST", "EARLIEST"):
        return "hint"
    if name.endswith(".index"):
        return "file index"
    for start in _KINDS:
        if name.startswith(f"{start}-"):
            return start
    return "other"


def change(table: SampleTable) -> None:
    """Run the write and the compactions of a trial."""
    table.append(batch(6, 9, "e", (3,)))
    if table.has_vectors:
        table.compact(full=False)
    table.compact(full=True)


def run(sample: Sample, folder: Path, chance: Random) -> tuple[str, list[Finding]]:
    """Damage one file of a copy of the sample. Return a description of the damage, and the outcome of each step."""
    root = folder / "trial"
    shutil.rmtree(root, ignore_errors=True)
    table = _copied(sample.root, root)
    kind = chance.choice(sorted(sample.kinds))
    target = chance.choice(sample.kinds[kind])
    damage = chance.choice(DAMAGES)
    data = (root / target).read_bytes()
    others = [(root / other).read_bytes() for other in sample.kinds[kind] if other != target]
    damaged = damage(data, [other for other in others if other != data], chance)
    done = f"{sample.name}: {damage.__name__} of {kind} {target}"
    (root / target).unlink()  # The copy shares the sample's files by hard links.
    if damaged is not None:
        (root / target).write_bytes(damaged)
    by_name = questions(sample.name)
    findings = [_compared(step, partial(ask, table), sample.before[step]) for step, ask in by_name.items()]
    findings.append(_compared("write and compact", partial(change, table), None))
    if findings[-1].verdict == "right":
        findings += [_compared(f"{step} after", partial(ask, table), sample.after[step]) for step, ask in by_name.items()]
    else:  # The copy is unchanged, or contains the write.
        (root / target).unlink(missing_ok=True)
        (root / target).write_bytes(data)
        expected = [rows["read"] for rows in (sample.before, sample.after)]
        restored = [_compared("read when restored", table.answer, rows) for rows in expected]
        findings.append(min(restored, key=lambda finding: finding.verdict != "right"))
    return done, findings


def _compared(step: str, act: Callable[[], Answer | None], expected: Answer | None) -> Finding:
    try:
        with time_limit(_PATIENCE, _TookTooLongError()):
            found = act()
    except LakelsmError as error:
        return Finding("refused", step, str(error))
    except _TookTooLongError:
        return Finding("hang", step)
    except Exception as error:  # noqa: BLE001 An error of another type is what the trial searches for.
        return Finding("untyped", step, f"{type(error).__name__}: {error}")
    if found == expected:
        return Finding("right", step)
    return Finding("silent", step, f"{found} instead of {expected}")


def _copied(root: Path, target: Path) -> SampleTable:
    shutil.copytree(root, target, copy_function=os.link)
    return SampleTable(target)
