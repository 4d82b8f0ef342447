"""The planning cases of ../shared/conformance pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.planning import RUNNERS

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"


def _cases() -> list[Any]:
    cases = []
    for topic in RUNNERS:
        path = FOLDER / f"{topic}.jsonl"
        if not path.is_file():
            reason = f"no {topic}.jsonl in ../shared/conformance"
            cases.append(pytest.param(topic, None, id=topic, marks=pytest.mark.skip(reason=reason)))
            continue
        for line in path.read_text().splitlines():
            case = json.loads(line)
            cases.append(pytest.param(topic, case, id=case["id"]))
    return cases


@pytest.mark.parametrize(("topic", "case"), _cases())
def test_conformance_case_passes(topic: str, case: dict[str, Any]) -> None:
    expected, actual = RUNNERS[topic](case)
    assert actual == expected
