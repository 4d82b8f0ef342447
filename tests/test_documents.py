"""Sections, files and pages that documents and docstrings name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FORMAT = ROOT / "docs" / "format.md"

#: Directories from which a path in a text may start.
BEGINNINGS = (ROOT, ROOT / "lakelsm", ROOT / "tests", ROOT / "docs")

MODULES = {path.name for path in (ROOT / "lakelsm").rglob("*.py")}

_SECTIONS = re.compile(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", re.MULTILINE)
_CITATION = re.compile(r"(?<![\"/])(docs/)?format\.md(?: ((?:\d+(?:\.\d+)?(?:, | and )?)+))?")
_PROSE = re.compile(r'"""(.*?)"""|^[^\n"]*?(#[^\n]*)', re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)")
_PATH = re.compile(r"(?<![\w./<*…-])((?:[\w-]+/)*[\w-]+\.(?:py|md|ipynb))(?![\w/*-])")


def documents() -> list[Path]:
    found = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
    return [path for path in found if path.name != "CHANGELOG.md"]


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py") if path != Path(__file__))


def prose(source: str) -> str:
    """Return the docstrings and comments of a module."""
    return "\n".join(docstring or comment for docstring, comment in _PROSE.findall(source))


def unknown_paths(text: str, home: Path) -> list[str]:
    """Return the paths of a text that lead to no file from any beginning; a bare name may be that of any module."""
    named = set(_PATH.findall(text)) - MODULES
    return sorted(path for path in named if not any((start / path).exists() for start in (*BEGINNINGS, home)))


def test_every_citation_of_the_format_page_names_sections_that_it_has() -> None:
    sections = set(_SECTIONS.findall(FORMAT.read_text(encoding="utf-8")))
    wrong, right = [], 0
    for path in sources("lakelsm", "tests"):
        text = re.sub(r"\s+(?:#:? )?", " ", path.read_text(encoding="utf-8"))
        for folder, numbers in _CITATION.findall(text):
            cited = re.findall(r"\d+(?:\.\d+)?", numbers)
            right += bool(cited)
            if not folder or not set(cited) <= sections:
                wrong.append(f"{path.relative_to(ROOT)}: {folder}format.md {numbers}")
    assert wrong == []
    assert right > 60


def test_the_format_page_refers_to_its_own_sections_only() -> None:
    text = FORMAT.read_text(encoding="utf-8")
    referred = re.findall(r"\(([1-9]\d*\.\d+(?:, \d+\.\d+)*)\)", text)
    assert len(referred) > 20
    assert {number for group in referred for number in group.split(", ")} <= set(_SECTIONS.findall(text))


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_every_link_and_path_in_a_document_leads_to_a_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [link for link in _LINK.findall(text) if not (path.parent / link).exists()] == []
    assert unknown_paths(text, path.parent) == []


def test_every_path_in_docstrings_and_comments_leads_to_a_file() -> None:
    unknown = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources("lakelsm", "tests", "tools", "jobs", "benchmarks")
        for name in unknown_paths(prose(path.read_text(encoding="utf-8")), path.parent)
    }
    assert unknown == set()


def test_no_docstring_is_a_concatenation_of_strings() -> None:
    broken = re.compile(r'"\n\s*"[^"\n]+"""')
    assert [path for path in sources("lakelsm", "tests") if broken.search(path.read_text(encoding="utf-8"))] == []
