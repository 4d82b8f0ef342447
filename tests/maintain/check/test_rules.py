"""The rules of a sound table, as docs/check.md tells them."""

from __future__ import annotations

from pathlib import Path

from lakelsm.maintain.check.rules import RULES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "check.md").read_text(encoding="utf-8")


def test_each_rule_is_on_the_page_with_its_remedy() -> None:
    told = [line for line in PAGE.split("## The rules")[1].splitlines() if line.startswith("| `")]
    assert told == [f"| `{r.name}` | {r.severity} | {r.holds} | {r.remedy} |" for r in RULES.values()]
