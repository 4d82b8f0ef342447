"""No option without effect: each is read by something that acts, is refused by name, or says what it waits for.

Found in the syntax of the package: an attribute of TableOptions that is read, or a key that is spelled out. What only
judges whether a table's options go together is no actor.
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
#: Modules that judge options, and do nothing that they ask for.
_JUDGES = frozenset({"schema/option_rules.py", "schema/engine_rules.py", "schema/new_values.py"})
_REFUSAL = "schema/unbuilt_features.py"
#: Options that nothing but the refusal reads, with a value that it refuses.
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
#: What options are called where they are read: `options`, `store.options`, `TableOptions.parse(schema.options)`.
_HOLDER = re.compile(r"(^|[._])options\)?$")
_KEYS = {key: name for name, option in ATTRIBUTES.items() for key in (option.key, *option.fallback_keys)}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _derived() -> dict[str, set[str]]:
    """Properties of TableOptions, and the attributes that each is made of."""
    tree = _tree(_PACKAGE / "options" / "table_options.py")
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == TableOptions.__name__)
    return {
        function.name: {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)} & set(ATTRIBUTES)
        for function in cls.body
        if isinstance(function, ast.FunctionDef) and isinstance(vars(TableOptions).get(function.name), property)
    }


def _read(module: str, tree: ast.Module, derived: dict[str, set[str]]) -> Iterator[str]:
    # A word such as 'type' is a key only where keys are refused.
    keys = {key: name for key, name in _KEYS.items() if module == _REFUSAL or "." in key or "-" in key}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _HOLDER.search(ast.unparse(node.value)):
            yield from derived.get(node.attr, {node.attr})
        elif isinstance(node, ast.Constant) and node.value in keys:
            yield keys[node.value]


@cache
def _readers() -> Mapping[str, set[str]]:
    """Modules that act on each attribute of TableOptions, or refuse it."""
    derived, readers = _derived(), defaultdict(set)
    for path in sorted(_PACKAGE.rglob("*.py")):
        module = path.relative_to(_PACKAGE).as_posix()
        if not module.startswith("options/") and module not in _JUDGES:
            for name in _read(module, _tree(path), derived):
                readers[name].add(module)
    return readers


def test_every_declared_option_acts_is_refused_or_waits_for_a_feature() -> None:
    readers = _readers()
    idle = [o.key for name, o in ATTRIBUTES.items() if not readers[name] and o.acts_from is None]
    assert not idle, f"declared, and read by nothing that acts: {idle}"


def test_an_option_that_is_only_refused_is_refused_for_each_value_but_the_one_that_holds() -> None:
    readers = _readers()
    refused = {o.key for name, o in ATTRIBUTES.items() if readers[name] == {_REFUSAL}}
    assert refused <= set(_REFUSED)
    for key, text in _REFUSED.items():
        schema = create_schema("k INT, v INT", ["k"], (), {key: text})
        with pytest.raises(UnsupportedFeatureError, match=re.escape(key)):
            options = TableOptions.parse(schema.options)
            refuse_unbuilt(schema, options, creating=False)
            refuse_unbuilt_writes(schema, options)


def test_an_option_that_waits_for_a_feature_is_read_by_nothing_yet() -> None:
    readers = _readers()
    stale = {o.key: readers[name] for name, o in ATTRIBUTES.items() if readers[name] and o.acts_from is not None}
    assert not stale, f"they act: take acts_from out of their declarations: {stale}"


def test_an_option_that_one_call_may_have_acts_outside_of_reads_and_schemas() -> None:
    readers = _readers()
    for name, option in ATTRIBUTES.items():
        if option.per_call:
            actors = {module for module in readers[name] if not module.startswith("schema/")}
            assert actors, f"no write acts on '{option.key}': declare it per_call=False"


def _named_in_code(keys: Iterable[str]) -> set[str]:
    """Of these keys those that a module has as a constant, but for those that declare and judge options."""
    found: set[object] = set()
    for path in _PACKAGE.rglob("*.py"):
        module = path.relative_to(_PACKAGE).as_posix()
        if not module.startswith("options/") and module not in _JUDGES:
            found |= {node.value for node in ast.walk(_tree(path)) if isinstance(node, ast.Constant)}
    return found & set(keys)


def test_every_option_of_a_column_is_read() -> None:
    assert _named_in_code(FIELD_OPTIONS) == set(FIELD_OPTIONS)


def test_what_one_list_accepts_no_other_refuses_or_declares() -> None:
    refused = {*UNBUILT_KEYS, *FEATURE_KEYS, *WRITE_KEYS, *UPKEEP_KEYS}
    assert not set(ACCEPTED_KEYS) & refused
    assert not {*ACCEPTED_KEYS, *refused} & set(OPTIONS)


def test_nothing_reads_a_key_that_is_accepted_without_effect() -> None:
    assert _named_in_code(ACCEPTED_KEYS) <= {"owner"}, "declare what acts as an option"
