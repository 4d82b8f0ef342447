"""The rules of a sound table, compared with docs/check.md."""

from __future__ import annotations

import re
from pathlib import Path

from lakelsm.maintain.check.rules import COMMON_REMEDIES, RULES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "check.md").read_text(encoding="utf-8")


def test_each_rule_is_on_the_page_with_its_remedy() -> None:
    words = {text: f"*{name}*" for name, text in COMMON_REMEDIES.items()}
    rows = [line for line in PAGE.split("## The rules")[1].splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{r.name}` | {r.severity} | {r.holds} | {words.get(r.remedy, r.remedy)} |" for r in RULES.values()
    ]
    assert [line for line in PAGE.splitlines() if re.match(r"- \*[a-z]", line)] == [
        f"- {word}: {text}" for text, word in words.items()
    ]
