"""Each option has an effect, is refused by name, or needs a feature that lakelsm does not support yet.

The test searches the source of the package for attributes of TableOptions and for keys as text. Modules that only check
options do not count.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import lakelsm
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.options import ATTRIBUTES, OPTIONS, TableOptions
from lakelsm.options.accepted_keys import ACCEPTED_KEYS
from lakelsm.options.field_options import FIELD_OPTIONS
from lakelsm.options.other_keys import FEATURE_KEYS, UNBUILT_KEYS, UPKEEP_KEYS, WRITE_KEYS
from lakelsm.schema.table_schema import create_schema
from lakelsm.schema.unbuilt_features import refuse_unbuilt, refuse_unbuilt_writes

_PACKAGE = Path(lakelsm.__file__).parent
#: Modules that only check options.
_CHECKS = frozenset({"schema/option_rules.py", "schema/engine_rules.py", "schema/new_values.py"})
_REFUSAL = "schema/unbuilt_features.py"
#: Options that only the refusal reads, with a refused value.
_REFUSED = {
    "branch": "dev",
    "data-evolution.enabled": "true",
    "file.format": "orc",
    "incremental-between": "1,2",
    "incremental-between-timestamp": "1,2",
    "incremental-to-auto-tag": "t",
    "row-tracking.enabled": "true",
    "scan.creation-time-millis": "1",
    "scan.file-creation-time-millis": "1",
    "scan.mode": "from-snapshot",
    "scan.snapshot-id": "1",
    "scan.tag-name": "t",
    "scan.timestamp": "2025-01-31",
    "scan.timestamp-millis": "1",
    "scan.version": "1",
    "scan.watermark": "1",
    "sequence.snapshot-ordering": "true",
    "type": "format-table",
}
#: Expressions for options in the source: `options`, `store.options`, `TableOptions.parse(schema.options)`.
_HOLDER = re.compile(r"(^|[._])options\)?$")
_KEYS = {key: name for name, option in ATTRIBUTES.items() for key in (option.key, *option.fallback_keys)}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _derived() -> dict[str, set[str]]:
    """Return the properties of TableOptions with the attributes that each one uses."""
    tree = _tree(_PACKAGE / "options" / "table_options.py")
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == TableOptions.__name__)
    return {
        function.name: {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)} & set(ATTRIBUTES)
        for function in cls.body
        if isinstance(function, ast.FunctionDef) and isinstance(vars(TableOptions).get(function.name), property)
    }


def _read(module: str, tree: ast.Module, derived: dict[str, set[str]]) -> Iterator[str]:
    # A word such as 'type' is a key only in the module that refuses keys.
    keys = {key: name for key, name in _KEYS.items() if module == _REFUSAL or "." in key or "-" in key}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _HOLDER.search(ast.unparse(node.value)):
            yield from derived.get(node.attr, {node.attr})
        elif isinstance(node, ast.Constant) and node.value in keys:
            yield keys[node.value]


@cache
def _readers() -> Mapping[str, set[str]]:
    """Return the modules that use or refuse each attribute of TableOptions."""
    derived, readers = _derived(), defaultdict(set)
    for path in sorted(_PACKAGE.rglob("*.py")):
        module = path.relative_to(_PACKAGE).as_posix()
        if not module.startswith("options/") and module not in _CHECKS:
            for name in _read(module, _tree(path), derived):
                readers[name].add(module)
    return readers


def test_every_declared_option_has_an_effect_is_refused_or_needs_a_missing_feature() -> None:
    readers = _readers()
    idle = [o.key for name, o in ATTRIBUTES.items() if not readers[name] and o.acts_from is None]
    assert not idle, f"declared, but without effect: {idle}"


def test_a_refused_option_is_refused_by_creation_opening_or_writes() -> None:
    readers = _readers()
    refused = {o.key for name, o in ATTRIBUTES.items() if readers[name] == {_REFUSAL}}
    assert refused <= set(_REFUSED)
    for key, text in _REFUSED.items():
        schema = create_schema("k INT, v INT", ["k"], (), {key: text})
        with pytest.raises(UnsupportedFeatureError, match=re.escape(key)):
            options = TableOptions.parse(schema.options)
            refuse_unbuilt(schema, options, creating=False)
            refuse_unbuilt_writes(schema, options)


def test_an_option_of_a_missing_feature_is_not_read() -> None:
    readers = _readers()
    active = {o.key: readers[name] for name, o in ATTRIBUTES.items() if readers[name] and o.acts_from is not None}
    assert not active, f"remove acts_from from the declarations of {active}"


def test_an_option_that_a_write_can_set_is_read_outside_schema() -> None:
    readers = _readers()
    for name, option in ATTRIBUTES.items():
        if option.per_call:
            actors = {module for module in readers[name] if not module.startswith("schema/")}
            assert actors, f"no write acts on '{option.key}': declare it per_call=False"


def _named_in_code(keys: Iterable[str]) -> set[str]:
    """Return the keys that modules have as constants, except modules that declare or check options."""
    found: set[object] = set()
    for path in _PACKAGE.rglob("*.py"):
        module = path.relative_to(_PACKAGE).as_posix()
        if not module.startswith("options/") and module not in _CHECKS:
            found |= {node.value for node in ast.walk(_tree(path)) if isinstance(node, ast.Constant)}
    return found & set(keys)


def test_every_option_of_a_column_is_read() -> None:
    assert _named_in_code(FIELD_OPTIONS) == set(FIELD_OPTIONS)


def test_each_key_is_in_only_one_list() -> None:
    refused = {*UNBUILT_KEYS, *FEATURE_KEYS, *WRITE_KEYS, *UPKEEP_KEYS}
    assert not set(ACCEPTED_KEYS) & refused
    assert not {*ACCEPTED_KEYS, *refused} & set(OPTIONS)


def test_a_key_that_is_accepted_without_effect_is_not_read() -> None:
    assert _named_in_code(ACCEPTED_KEYS) <= {"owner"}, "declare a key with an effect as an option"
