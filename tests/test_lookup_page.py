"""docs/lookup.md: its examples have the results on the page, and its options are those of lookups."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from lakelsm.options import OPTIONS
from lakelsm.options.lookup_options import LookupOptions

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "lookup.md").read_text(encoding="utf-8")


def test_the_examples_have_the_results_of_the_page(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    checked = 0
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        source = block.replace("file:///tmp/lookups", tmp_path.as_uri())
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            said = re.search(r"  # (.*)", lines[node.end_lineno - 1]) if isinstance(node, ast.Expr) else None
            if said is not None:
                checked += 1
                # An expression with a value on the page becomes a check of this value.
                line = lines[node.lineno - 1]
                indent = line[: len(line) - len(line.lstrip())]
                lines[node.lineno - 1] = f"{indent}assert ({ast.unparse(node.value)}) == ({said[1]}), {said[1]!r}"
        exec("\n".join(lines), names)
    assert checked == 11


def test_the_page_names_every_option_of_lookups() -> None:
    table = PAGE.split("## Options")[1]
    named = set(re.findall(r"`([a-z]+(?:[.-][a-z0-9]+)+)`", table))
    declared = {field.metadata["option"].key for field in fields(LookupOptions)}
    assert declared <= named
    assert named - declared == set(OPTIONS["scan.partitions"].fallback_keys)
