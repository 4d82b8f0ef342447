"""Case files: one JSON object on each line. Its keys show the kind of the case."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any


class CaseKind(Enum):
    """The kind of a case, with the topic of cases that name none."""

    TABLE = "table"
    UNIVERSAL = "universal"
    INTERVAL = "interval"
    COMPACT_TASK = "compact_task"


# A key that only this kind of case has.
_TELLING_KEYS = {
    "steps": CaseKind.TABLE,
    "method": CaseKind.UNIVERSAL,
    "unit": CaseKind.COMPACT_TASK,
    "expect_sections": CaseKind.INTERVAL,
}


class CaseFileError(ValueError):
    """A line that is not a case, or a selection that matches none."""


@dataclass(frozen=True)
class Case:
    """One case: `body` is its JSON object from the file."""

    kind: CaseKind
    id: str
    topic: str
    body: dict[str, Any]


def parse_case(body: dict[str, Any]) -> Case:
    """Return the case of a JSON object. Raises CaseFileError if its kind is unknown."""
    for key, kind in _TELLING_KEYS.items():
        if key in body:
            return Case(kind, str(body["id"]), str(body.get("topic") or kind.value), body)
    raise CaseFileError(f"case {body.get('id')!r} has none of the keys {', '.join(_TELLING_KEYS)}")


def load_cases(files: Sequence[Path], topic: str | None = None, case_id: str | None = None) -> list[Case]:
    """Return the cases of all files, in order, with the requested topic and id. Raises CaseFileError for none."""
    cases: list[Case] = []
    for file in files:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                cases.append(parse_case(json.loads(line)))
            except (CaseFileError, json.JSONDecodeError, KeyError, TypeError) as error:
                raise CaseFileError(f"{file}:{number}: {error}") from error
    chosen = [case for case in cases if topic in (None, case.topic) and case_id in (None, case.id)]
    if not chosen:
        topics = ", ".join(sorted({case.topic for case in cases}))
        raise CaseFileError(f"no case of topic {topic!r} and id {case_id!r}; the topics are: {topics}")
    return chosen
