"""The findings of a check. They are bounded in memory, and faults of files that expired during the check are dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lakelsm.errors import LakelsmError
from lakelsm.maintain.check.rules import Rule
from lakelsm.results import CheckFinding
from lakelsm.storage import FileIO

#: The maximum number of findings of one rule that are listed; the others are only counted.
MAX_FINDINGS_PER_RULE = 1000


@dataclass(frozen=True)
class _Found:
    finding: CheckFinding
    owner: str | None


def _is_within(found: _Found, directories: Collection[str]) -> bool:
    paths = (found.finding.thing, found.owner or "")
    return any(f"{path}/".startswith(f"{directory}/") for path in paths for directory in directories)


class Findings:
    """Collects findings, one for each rule and thing. A thing that many snapshots name is reported once.

    An ``owner`` is the path of the file (such as a snapshot or a tag) that names the thing.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], _Found] = {}
        self._counts: Counter[str] = Counter()
        self._things: set[str] = set()

    def add(self, rule: Rule, thing: str, problem: str, owner: str | None = None) -> None:
        """Add a finding."""
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
    def errors_as(self, rule: Rule, thing: str, owner: str | None = None) -> Iterator[None]:
        """Turn an error of the table or the storage that the block raises into a finding."""
        try:
            yield
        except (LakelsmError, OSError) as error:
            self.add(rule, thing, str(error), owner)

    def has_fault(self, thing: str) -> bool:
        """Return whether a thing has a finding."""
        return thing in self._things

    @property
    def owners(self) -> set[str]:
        """The owners of all findings."""
        return {found.owner for found in self._found.values() if found.owner is not None}

    def reported(self, file_io: FileIO, removed: Collection[str] = ()) -> tuple[Sequence[CheckFinding], int]:
        """Return the findings, errors first, and the number of findings that are not listed.

        It is not a fault if a file of an expired snapshot is missing. Therefore findings whose owner no longer exists are
        dropped, and findings in the ``removed`` directories and files.
        """
        left = [found for found in self._found.values() if not _is_within(found, removed)]
        owners = {found.owner for found in left if found.owner is not None}
        missing = {owner for owner in owners if not file_io.exists(owner)}
        kept = [found.finding for found in left if found.owner not in missing]
        left_out = sum(count - min(count, MAX_FINDINGS_PER_RULE) for count in self._counts.values())
        return sorted(kept, key=lambda finding: finding.severity), left_out
