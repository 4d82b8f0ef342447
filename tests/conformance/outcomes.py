"""The outcome of each case, and the report by topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from tests.conformance.cases import Case


class Status(Enum):
    """The verdicts, in the order of the report's columns."""

    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True)
class Outcome:
    """The verdict of one case. `where` names the step, `expected` and `actual` are in the notation of the cases."""

    case: Case
    status: Status
    where: str = ""
    message: str = ""
    expected: str | None = None
    actual: str | None = None

    def text(self) -> str:
        """Return the verdict with all its details, on one or more lines."""
        lines = [f"{self.status.value} {self.case.id} [{self.case.topic}]"]
        if self.where:
            lines[0] += f" at {self.where}"
        if self.message:
            lines.append("  " + self.message.replace("\n", "\n  "))
        if self.expected is not None:
            lines += [f"  expected {self.expected}", f"  actual   {self.actual}"]
        return "\n".join(lines)


def summary_by_topic(outcomes: Iterable[Outcome]) -> str:
    """Return a table: topic, passed, failed, refused."""
    counts = Counter((outcome.case.topic, outcome.status) for outcome in outcomes)
    topics = sorted({topic for topic, _ in counts})
    width = max([len(topic) for topic in topics] + [len("topic")])
    lines = [f"{'topic':<{width}}" + "".join(f"{status.value:>9}" for status in Status)]
    lines += [
        f"{topic:<{width}}" + "".join(f"{counts[topic, status]:>9}" for status in Status) for topic in topics
    ]
    return "\n".join(lines)


def closing_line(outcomes: Iterable[Outcome]) -> str:
    """``passed N, failed N, refused N``."""
    counts = Counter(outcome.status for outcome in outcomes)
    return ", ".join(f"{status.value} {counts[status]}" for status in Status)
