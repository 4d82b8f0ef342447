"""Prints all texts that a user can see: errors, warnings, log lines, help, findings and descriptions of options.

`python tools/list_messages.py [folder …]` prints one line for each text, with its kind, file and line. A computed part
is printed as `{…}`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("lakelsm", "jobs")

#: Calls whose text arguments a user sees, by the last part of their name.
_KINDS = {
    "warn": "warning",
    "warn_after_commit": "warning",
    "debug": "log",
    "info": "log",
    "warning": "log",
    "error": "log",
    "exception": "log",
    "log_step": "log",
    "ArgumentParser": "help",
    "add_argument": "help",
    "add_parser": "help",
    "Verb": "help",
    "VerbGroup": "help",
    "CatalogVerb": "help",
    "Option": "option",
    "option": "option",
    "Feature": "error",
    "Rule": "finding",
}


def main(folders: list[str]) -> None:
    """Print the texts of the folders, sorted by file and line."""
    for folder in folders or FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for line, kind, text in messages(path.read_text(encoding="utf-8")):
                print(f"{kind:8} {path.relative_to(ROOT)}:{line}: {text}")


def messages(source: str) -> Iterator[tuple[int, str, str]]:
    """Return the texts of a module: line, kind and text."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            kind = _kind(node)
            values = [*node.args, *(keyword.value for keyword in node.keywords)] if kind else []
            found.update((value.lineno, kind, text) for value in values for text in _texts(value))
    return iter(sorted(found))


def _kind(call: ast.Call) -> str:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return "error" if name.endswith("Error") else _KINDS.get(name, "")


def _texts(value: ast.expr) -> Iterator[str]:
    """Yield the texts of an argument that contain a space, of both branches of a condition."""
    if isinstance(value, ast.IfExp):
        yield from (*_texts(value.body), *_texts(value.orelse))
    elif isinstance(value, ast.BinOp):
        yield from (*_texts(value.left), *_texts(value.right))
    text = _text(value)
    if " " in text:
        yield " ".join(text.split())


def _text(value: ast.expr) -> str:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        return "".join(_text(part) or "{…}" for part in value.values)
    return ""


if __name__ == "__main__":
    main(sys.argv[1:])
