"""Texts of the project use the words of docs/glossary.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.list_messages import messages

ROOT = Path(__file__).resolve().parents[1]

#: A phrase that does not come back, and the plain words for it.
PLAIN = {
    r"\b(?:is|are|was|were) told\b": "is reported, is logged, is returned",
    r"\bgo(?:es)? on from\b": "is based on, continues from",
    r"\blets? (?!us\b)\w+(?: \w+)? go\b": "expires, deletes",
    r"\bhe\b(?! is not)|\bhis\b|\bwhoever\b": "the writer, the reader",
    r"\banew\b": "again",
    r"\bmeanwhile\b": "concurrently, since",
    r"\bworked off\b": "processed",
    r"\bgravest\b": "most severe",
    r"(?<!\bthere )\bis (?-i:none)\b": "is not a",
    r"\bdied\b": "crashed",
    r"\bstale rows?\b": "hidden row",
    r"\bmend(?:s|ed)?\b": "fix",
}

#: Pages and folders in plain words, from the root.
REWRITTEN = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "benchmarks", "docs", "jobs", "lakelsm", "tests", "tools")
#: Files that list the phrases themselves.
LISTS = ("docs/glossary.md", "docs/contributing/style.md", "tests/test_language.py")


def texts() -> list[Path]:
    paths = [ROOT / name for name in REWRITTEN]
    files = [file for path in paths for file in (path.rglob("*.*") if path.is_dir() else [path])]
    kept = {ROOT / name for name in LISTS}
    return sorted(file for file in files if file.suffix in (".md", ".py") and file not in kept)


@pytest.mark.parametrize("path", texts(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_rewritten_texts_stay_plain(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = [
        f"line {text.count(chr(10), 0, match.start()) + 1}: {match.group()!r}: {plain}"
        for phrase, plain in PLAIN.items()
        for match in re.finditer(phrase, text, re.IGNORECASE)
    ]
    assert found == []


def test_pages_that_are_read_in_an_editor_have_lines_of_120_columns() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    assert len(architecture) <= 250
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 140
    pages = [ROOT / "ARCHITECTURE.md", *(ROOT / "docs" / "design").glob("*.md"), ROOT / "docs" / "glossary.md"]
    lines = {page.name: page.read_text(encoding="utf-8").splitlines() for page in pages}
    assert {name: max(map(len, read)) for name, read in lines.items() if max(map(len, read)) > 120} == {}


def test_no_message_names_a_call_that_has_a_namespace_now() -> None:
    verbs, things = "create|replace|rename|delete|expire|record", "tag|branch|branche|consumer"
    old = re.compile(rf"\b(?:{verbs})_(?:{things})s?\b|system_arrow")
    shown = {
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in (ROOT / "lakelsm").rglob("*.py")
        for line, _, text in messages(path.read_text(encoding="utf-8"))
        if old.search(text)
    }
    assert shown == set()
