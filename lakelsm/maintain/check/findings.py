"""What a check has found so far: bounded in memory, and without what expired while it ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lakelsm.errors import LakelsmError
from lakelsm.maintain.check.rules import Rule
from lakelsm.results import CheckFinding
from lakelsm.storage import FileIO

#: Findings of one rule that are listed; the others are counted.
MAX_FINDINGS_PER_RULE = 1000


@dataclass(frozen=True)
class _Found:
    finding: CheckFinding
    owner: str | None


def _is_within(found: _Found, directories: Collection[str]) -> bool:
    paths = (found.finding.thing, found.owner or "")
    return any(f"{path}/".startswith(f"{directory}/") for path in paths for directory in directories)


class Findings:
    """Collects findings, one for each rule and thing: a thing that many snapshots name is reported once.

    An ``owner`` is the path of the file (a snapshot, a tag) that names the thing.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], _Found] = {}
        self._counts: Counter[str] = Counter()
        self._things: set[str] = set()

    def add(self, rule: Rule, thing: str, problem: str, owner: str | None = None) -> None:
        """Take a finding."""
        if (rule.name, thing) in self._found:
            return
        self._counts[rule.name] += 1
        self._things.add(thing)
        if self._counts[rule.name] <= MAX_FINDINGS_PER_RULE:
            finding = CheckFinding(
                severity=rule.severity.value, rule=rule.name, thing=thing, problem=problem, remedy=rule.remedy
            )
            self._found[rule.name, thing] = _Found(finding, owner)

    @contextmanager
    def instead_of_errors(self, rule: Rule, thing: str, owner: str | None = None) -> Iterator[None]:
        """What is raised within, of the table or of the storage, is a finding."""
        try:
            yield
        except (LakelsmError, OSError) as error:
            self.add(rule, thing, str(error), owner)

    def tell_of(self, thing: str) -> bool:
        """Whether something was found that is wrong with a thing."""
        return thing in self._things

    @property
    def owners(self) -> set[str]:
        """The owners of what was found."""
        return {found.owner for found in self._found.values() if found.owner is not None}

    def told(self, file_io: FileIO, gone: Collection[str] = ()) -> tuple[Sequence[CheckFinding], int]:
        """The findings, errors first, and how many more there are.

        A file that an expired snapshot named may be deleted, no fault: findings are dropped with their owner, and
        with the directories and files in ``gone``.
        """
        left = [found for found in self._found.values() if not _is_within(found, gone)]
        owners = {found.owner for found in left if found.owner is not None}
        missing = {owner for owner in owners if not file_io.exists(owner)}
        kept = [found.finding for found in left if found.owner not in missing]
        left_out = sum(count - min(count, MAX_FINDINGS_PER_RULE) for count in self._counts.values())
        return sorted(kept, key=lambda finding: finding.severity), left_out
