"""Types of public methods are exported, and docs/api.md describes the whole public API."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import pkgutil
import re
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

import lakelsm
from lakelsm import Catalog, Lookup, Table, TableView, errors, results, schema_changes
from lakelsm.errors import ErrorKind
from lakelsm.results import CompactionStatus
from lakelsm.results.result import OperationResult
from lakelsm.system_tables.file_tables import LAYOUT
from lakelsm.system_tables.metadata_tables import COMMITS
from lakelsm.table import (
    ResultTable,
    SnapshotInspection,
    TableBranches,
    TableConsumers,
    TableInspection,
    TableMaintenance,
    TableMerge,
    TableTags,
)

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
CODE = re.findall(r"(?<!`)`([^`]+)`(?!`)", PAGE)
EXPORTED = {name: getattr(lakelsm, name) for name in lakelsm.__all__}
NAMESPACES = (TableMaintenance, TableTags, TableBranches, TableConsumers, TableInspection)
RESULTS = [each for name, each in vars(results).items() if name in results.__all__ and dataclasses.is_dataclass(each)]
PUBLIC = {*EXPORTED.values(), *NAMESPACES, SnapshotInspection, ResultTable, TableMerge}
PUBLIC |= {
    each for module in (errors, results, schema_changes) for each in vars(module).values() if inspect.isclass(each)
}
#: Names that modules of the public API use only in type annotations, because they are imported on first use.
LATE = {
    "AnyTable": Table,
    "DataFrame": DataFrame,
    "Lookup": Lookup,
    "SparkSession": SparkSession,
    "StreamingQuery": StreamingQuery,
    "StructType": StructType,
    "pandas": pandas,
    "polars": types.SimpleNamespace(DataFrame=object),
}
_EMPTY = inspect.Parameter.empty


def public_methods(kind: type) -> dict[str, Callable[..., Any]]:
    inherited = {name: each for part in reversed(kind.mro()[:-1]) for name, each in vars(part).items()}
    found = {name: each for name, each in inherited.items() if not name.startswith("_")}
    return {name: each.__func__ if isinstance(each, staticmethod) else each for name, each in found.items()}


FACE = [
    (kind, name, each)
    for kind in (Catalog, Table, TableMerge, *NAMESPACES, ResultTable, Lookup)
    for name, each in public_methods(kind).items()
]
FACE += [(TableView, name, each) for name, each in vars(TableView).items() if not name.startswith("_")]
METHODS = [(kind, name, each) for kind, name, each in FACE if not isinstance(each, property)]


def called(function: Callable[..., Any]) -> str:
    """Return a call in the form of the page: names and defaults, without types and self."""
    signature = inspect.signature(function)
    parameters = [each.replace(annotation=_EMPTY) for each in signature.parameters.values() if each.name != "self"]
    return str(signature.replace(parameters=parameters, return_annotation=_EMPTY))


#: The names of namespace classes on the page.
LABELS: dict[type, str] = {
    TableMaintenance: "Table.maintenance",
    TableTags: "Table.tags",
    TableBranches: "Table.branches",
    TableConsumers: "Table.consumers",
    TableInspection: "Table.inspect",
}


def label(kind: type) -> str:
    return LABELS.get(kind, kind.__name__)


def section(kind: type, name: str) -> str:
    found = re.search(rf"^### `{label(kind)}\.{name}\b.*?(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no heading for {kind.__name__}.{name}"
    return found[0]


def classes_in(annotation: object) -> Iterator[type]:
    if inspect.isclass(annotation) and not typing.get_args(annotation):
        yield annotation
    for part in typing.get_args(annotation):
        yield from classes_in(part)


def test_every_exported_name_is_on_the_page() -> None:
    named = set(re.findall(r"\w+", " ".join(CODE)))
    assert sorted(set(EXPORTED) - named) == []


@pytest.mark.parametrize(("kind", "name", "each"), FACE)
def test_every_public_method_and_property_has_a_heading_that_is_its_signature(kind: type, name: str, each: Any) -> None:
    call = "" if isinstance(each, property) else called(each)
    assert section(kind, name).splitlines()[0] == f"### `{label(kind)}.{name}{call}`"
    function = each.fget if isinstance(each, property) else each
    assert inspect.getdoc(function)


@pytest.mark.parametrize(("kind", "name", "each"), METHODS)
def test_every_parameter_is_described_with_its_method(kind: type, name: str, each: Any) -> None:
    output = "\n".join(section(kind, name).splitlines()[1:])
    parameters = set(inspect.signature(each).parameters) - {"self"}
    assert sorted(parameter for parameter in parameters if f"`{parameter}`" not in output) == []


@pytest.mark.parametrize(("kind", "name", "each"), METHODS)
def test_every_method_documents_its_errors(kind: type, name: str, each: Any) -> None:
    output = "\n".join(section(kind, name).splitlines()[1:])
    assert re.search(r"\b[Ee]rrors?\b|`\w+Error`", output), "say 'Errors: ...', or whose errors they are"


@pytest.mark.parametrize(("kind", "name", "each"), FACE)
def test_every_type_that_a_public_method_takes_or_returns_is_exported(kind: type, name: str, each: Any) -> None:
    function = each.fget if isinstance(each, property) else each
    hints = typing.get_type_hints(function, {**LATE, **vars(importlib.import_module(function.__module__))})
    assert "return" in hints
    found = {part for hint in hints.values() for part in classes_in(hint) if part.__module__.startswith("lakelsm")}
    assert sorted(part.__name__ for part in found if part not in PUBLIC) == []


@pytest.mark.parametrize("kind", RESULTS)
def test_every_value_of_a_result_is_on_the_page_and_its_type_is_exported(kind: type) -> None:
    assert [field.name for field in dataclasses.fields(kind) if field.name not in CODE] == []
    late = {"ClassVar": typing.ClassVar, "SchemaChange": schema_changes.SchemaChange}
    hints = typing.get_type_hints(kind, {**vars(importlib.import_module(kind.__module__)), **late})
    found = {part for hint in hints.values() for part in classes_in(hint) if part.__module__.startswith("lakelsm")}
    assert found <= PUBLIC


def test_every_result_with_an_outcome_is_in_the_table_of_outcomes() -> None:
    rows = re.findall(r"^\| `(\w+Result)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(each.__name__ for each in RESULTS if issubclass(each, OperationResult))


@pytest.mark.parametrize("kind", [CompactionStatus, ErrorKind])
def test_every_text_that_schedulers_read_is_on_the_page(kind: type[enum.Enum]) -> None:
    assert [member.value for member in kind if member.value not in CODE] == []


def test_every_schema_change_is_on_the_page_with_its_arguments() -> None:
    for change in typing.get_args(lakelsm.schema_changes.SchemaChange):
        assert f"{change.__name__}{called(change)}" in CODE


@pytest.mark.parametrize(("name", "schema"), [("snapshots", COMMITS.schema), ("files", LAYOUT.schema)])
def test_the_columns_of_a_system_table_are_on_the_page_in_their_order(name: str, schema: Any) -> None:
    output = re.findall(r"`(\w+)`", section(TableInspection, name).split("Columns: ")[1])
    assert [column for column in output if column in schema.names] == schema.names


def test_exports_are_sorted_and_complete() -> None:
    assert sorted(lakelsm.__all__) == list(lakelsm.__all__)
    rooms = {module.name for module in pkgutil.iter_modules(lakelsm.__path__)}
    public = {name for name in dir(lakelsm) if not name.startswith("_")} - rooms - {"TYPE_CHECKING"}
    assert public | {"__version__"} == set(lakelsm.__all__)


def test_the_package_exports_few_names() -> None:
    assert len(lakelsm.__all__) <= 25
    assert len([name for name in dir(Table) if not name.startswith("_")]) <= 25
