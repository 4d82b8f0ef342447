"""Filters of Java, pypaimon and lakelsm on every type find all rows: statistics and indexes of files hide none.

Each engine skips files and row groups by bounds and null counts in manifests, footers and dictionaries of Parquet, and
indexes. A row that another engine misses in files of lakelsm and finds in its own is a bug of lakelsm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from lakelsm import Table
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.manifest.data_file_meta import SimpleStats
from lakelsm.format.row.binary_row import decode_row
from lakelsm.format.row.binary_row_slots import is_row_type
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER
from lakelsm.schema.option_rules import can_have_index
from lakelsm.types import AtomicType, DataField, parse_columns
from tests.compact.local_table import LocalTable
from tests.engines import TableEngine
from tests.examples import examples
from tests.interop.filter_questions import VALUES, FilterTable, Question, matches, python_of, sql_of
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon, Peer, PyPaimon
from tests.interop.samples import rows_of
from tests.interop.value_form import Rows, cut_to_micros

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHOLE_AND_PLAIN = {"metadata.stats-mode": "full", "parquet.enable.dictionary": "false"}


@dataclass(frozen=True)
class Case:
    """The way in which a table is written.

    ``state`` is compacted, level 0, or updated: with later rows on level 0 above compacted ones. ``indexes`` is the
    size up to which file indexes are in manifests; '' for no indexes. ``seed`` is that of random values, 0 for none.
    """

    role: str = "values"
    options: Mapping[str, str] = field(default_factory=dict)
    state: str = "compacted"
    indexes: str = ""
    seed: int = 0

    @cached_property
    def table(self) -> FilterTable:
        return FilterTable(self.role, Random(self.seed) if self.seed else None)

    @property
    def all_options(self) -> dict[str, str]:
        options = {"bucket": "1", "write-only": "true", **self.options}
        if self.indexes:
            options |= {"metadata.stats-mode": "none", "file-index.in-manifest-threshold": self.indexes}
            for kind in (BLOOM_FILTER, BITMAP):
                names = [each.name for each in self.table.fields[2:] if can_have_index(kind, each.type)]
                options[f"file-index.{kind}.columns"] = ",".join(names)
                if kind == BLOOM_FILTER:
                    options |= {f"file-index.{kind}.{name}.items": "50" for name in names}
        return options


CASES = {
    "values": Case(),
    "values on level 0": Case(state="level 0"),
    "updated values": Case(state="updated"),
    "values without dictionaries": Case(options=WHOLE_AND_PLAIN),
    "values with short bounds": Case(options={"metadata.stats-mode": "truncate(1)"}),
    "values with null counts": Case(options={"metadata.stats-mode": "counts"}),
    "indexes in manifests": Case(indexes="1 mb"),
    "indexes beside masked files": Case(indexes="1 b", options={"deletion-vectors.enabled": "true"}),
    "keys": Case("keys"),
    "keys on level 0": Case("keys", state="level 0"),
    "keys without dictionaries": Case("keys", options=WHOLE_AND_PLAIN),
    "indexes of keys": Case("keys", indexes="1 mb"),
    "partitions": Case("partitions", state="level 0"),
}


@dataclass(frozen=True)
class Written:
    """A table of lakelsm, and its rows."""

    case: Case
    path: Path
    rows: Rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Written]:
    """``made(name)`` returns the table of a case, created once."""
    found: dict[str, Written] = {}

    def written(name: str) -> Written:
        if name not in found:
            found[name] = write(CASES[name], tmp_path_factory.mktemp("filters"))
        return found[name]

    return written


def write(case: Case, folder: Path) -> Written:
    """Write the table of a case."""
    ours, table, path = LakelsmTables(TableEngine("local")), case.table, folder / "db.db" / "t"
    ours.create(path, table.columns, table.primary_key, table.partition_by, case.all_options)
    rows = table.rows()
    size = 8 if case.role == "partitions" else len(rows)  # Several manifests, each with bounds of its partitions.
    for start in range(0, len(rows), size):
        ours.write(path, rows.slice(start, size))
    if case.state != "level 0":
        ours.compact(path)
    if case.state == "updated":
        ours.write(path, table.later_rows())
    return Written(case, path, ours.read(path))


@pytest.fixture(scope="module")
def pypaimon(peers: Callable[[str], Peer]) -> PyPaimon:
    peer = peers("pypaimon")
    assert isinstance(peer, PyPaimon)
    return peer


def written_by_java(java: JavaPaimon, written: Written) -> Path:
    """Return the same rows in files of Java."""
    path = written.path.parent.parent / "java" / "db.db" / "t"
    if not path.exists():
        case = written.case
        java.create(path, case.table.columns, case.table.primary_key, case.table.partition_by, case.all_options)
        java.write(path, LakelsmTables(TableEngine("local")).table(written.path).to_arrow())
        if case.state == "compacted":
            java.compact(path)
    return path


def root_of(table: FilterTable, question: Question) -> str:
    """Return the root of the type of the question's column."""
    (kind,) = (each.type for each in table.fields if each.name == question.column)
    return kind.root if isinstance(kind, AtomicType) else "nested"


@pytest.mark.parametrize("name", CASES)
def test_java_finds_all_rows_of_lakelsm_files(java: JavaPaimon, made: Callable[[str], Written], name: str) -> None:
    written = made(name)
    assert java.read(written.path) == written.rows
    assert_java_loses_none(java, written, written.case.table.sample(examples(80).max_examples, Random(name)))


def assert_java_loses_none(java: JavaPaimon, written: Written, asked: Sequence[Question]) -> None:
    """Rows that Java misses in files of lakelsm, it also misses in its own files, for a known reason."""
    table = written.case.table
    answers = java.ask(written.path, asked)
    lost = {}
    for question, (_, left, true) in zip(asked, answers, strict=True):
        wanted, root = table.answer(question, written.rows), root_of(table, question)
        if not wanted <= {*left}:
            lost[question] = wanted - {*left}
        elif root not in ("FLOAT", "DOUBLE", "BINARY", "VARBINARY"):  # Java compares these in another way.
            assert {*true} == wanted, question
    skipped = [question for question, (_, left, _) in zip(asked, answers) if len(left) < len(written.rows)]
    assert len(skipped) > len(asked) // 10 or written.case.state != "compacted"
    theirs = java.ask(written_by_java(java, written), [*lost])
    found = {question: lost[question] & {*left} for question, (_, left, _) in zip(lost, theirs)}
    assert not any(found.values()), found
    assert all(is_known(table, question) for question in lost), lost


@pytest.mark.property
@pytest.mark.parametrize("number", range(1, 1 + examples(2).max_examples))
def test_all_rows_of_random_values_are_found(java: JavaPaimon, tmp_path: Path, number: int) -> None:
    chance = Random(number)
    modes = ["truncate(16)", "full", "counts", "none", f"truncate({chance.randint(1, 4)})"]
    options = {
        "metadata.stats-mode": chance.choice(modes),
        "parquet.enable.dictionary": chance.choice(["true", "false"]),
        "deletion-vectors.enabled": chance.choice(["true", "false"]),
    }
    masks = options["deletion-vectors.enabled"] == "true"
    states = ["compacted"] if masks else ["compacted", "level 0", "updated"]
    role, indexes = chance.choice(["values", "values", "keys"]), chance.choice(["", "", "1 mb", "1 b"])
    written = write(Case(role, options, chance.choice(states), indexes, seed=number), tmp_path / "ours")
    assert_java_loses_none(java, written, written.case.table.sample(80, chance))
    assert_found(written.path, written.case.table, written.rows, written.case.table.sample(30, chance))


def is_known(table: FilterTable, question: Question) -> bool:
    """Return whether docs/differences.md says that Java misses such rows, also in its own files."""
    if root_of(table, question) in ("FLOAT", "DOUBLE"):
        return bool({"0.0", "-0.0"} & {*question.operands})
    # A bitmap has microseconds.
    return question.column.startswith("timestamp_9") and question.method in ("not_equal", "not_in", "not_in_set")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.state == "compacted" and not case.indexes])
def test_column_statistics_of_manifests_equal_javas(java: JavaPaimon, made: Callable[[str], Written], name: str) -> None:
    written = made(name)
    ours, theirs = (statements(path) for path in (written.path, written_by_java(java, written)))
    assert len(ours) > 20
    assert {key: (ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]} == {}


def statements(path: Path) -> dict[tuple[bytes, str, str], str]:
    """Return keys and column statistics of the manifest entry of each partition's file."""
    table = LocalTable(path)
    schema = table.store.schema
    keys = [schema.field(name) for name in schema.trimmed_primary_keys]
    found: dict[tuple[bytes, str, str], str] = {}
    for entry in table.live():
        file, values = entry.file, schema.fields
        if file.value_stats_cols is not None:
            values = tuple(schema.field(name) for name in file.value_stats_cols)
        ends = zip(*(decode_row(end, [key.type for key in keys]) for end in (file.min_key, file.max_key)))
        for key, both in zip(keys, ends):
            found[entry.partition, "range", key.name] = repr(both)
        for about, stats, fields in (("key", file.key_stats, keys), ("value", file.value_stats, values)):
            for name, text in recorded_columns(stats, fields):
                found[entry.partition, about, name] = text
    return found


def recorded_columns(stats: SimpleStats, fields: Sequence[DataField]) -> Iterator[tuple[str, str]]:
    """Return null count and bounds of each column; if bounds differ (docs/differences.md), only the count."""
    types = [each.type if is_row_type(each.type) else AtomicType("BIGINT") for each in fields]
    bounds = zip(*(decode_row(row, types) for row in (stats.min_values, stats.max_values)))
    for each, known, nulls in zip(fields, bounds, stats.null_counts or (), strict=True):
        differ = each.name in ("float", "double") or each.name.startswith("timestamp_9")
        yield each.name, f"{nulls} {'' if differ else repr(known)}"


@pytest.mark.parametrize("name", ["values", "keys"])
def test_pypaimon_finds_all_rows_of_lakelsm_files(
    java: JavaPaimon, pypaimon: PyPaimon, made: Callable[[str], Written], name: str
) -> None:
    written = made(name)
    table = written.case.table
    asked = [each for each in table.sample(examples(100).max_examples, Random(name)) if has_python(each, table)]
    differing: dict[Question, list[int] | str] = {
        question: found
        for question, found in zip(asked, pypaimon.ask(written.path, asked), strict=True)
        if isinstance(found, str) or {*found} != table.answer(question, written.rows)
    }
    # pypaimon compares floats by IEEE 754, and some comparisons of instants raise an error.
    assert {root_of(table, question) for question in differing} <= {"FLOAT", "DOUBLE", "TIMESTAMP_LTZ"}
    theirs = pypaimon.ask(written_by_java(java, written), [*differing])
    for (question, ours), their in zip(differing.items(), theirs, strict=True):
        wanted = table.answer(question, written.rows)
        if isinstance(ours, str) or isinstance(their, str):
            assert (question, ours) == (question, their)
        else:
            assert wanted - {*ours} <= wanted - {*their}, question


def test_equalities_read_the_bucket_of_the_key(java: JavaPaimon, tmp_path: Path) -> None:
    ours = LakelsmTables(TableEngine("local"))
    for number, (kind, values) in enumerate(VALUES.items()):
        path, columns = tmp_path / "db.db" / f"t{number}", f"k {kind}, id INT"
        (key, _), ids = parse_columns(columns), list(range(len(values)))
        ours.create(path, columns, ["k"], options={"bucket": "7", "write-only": "true"})
        ours.write(path, rows_of(columns, {"k": values, "id": ids}))
        rows = ours.read(path)
        asked = [Question("equal", "k", (value,)) for value, _ in rows]
        table = ours.table(path)
        for question, (_, left, _) in zip(asked, java.ask(path, asked), strict=True):
            wanted = {one for value, one in rows if matches(question, value, key)}
            assert wanted and wanted <= {*left}, (kind, question)
        for question in asked[::8]:
            found = found_by(table, sql_of(question, key))
            assert found in (None, {one for value, one in rows if matches(question, value, key)}), (kind, question)


def has_python(question: Question, table: FilterTable) -> bool:
    """Return whether pypaimon has the condition and its operands."""
    column = next(each for each in table.fields if each.name == question.column)
    try:
        for operand in question.operands:
            python_of(operand, column)
    except ValueError:
        return False
    return question.method not in ("in_set", "not_in_set")


def conditions(table: FilterTable, asked: Sequence[Question]) -> list[tuple[Question, str]]:
    columns: dict[str, DataField] = {each.name: each for each in table.fields}
    texts = [(question, sql_of(question, columns[question.column])) for question in asked]
    return [(question, text) for question, text in texts if text is not None]


@pytest.mark.parametrize("name", CASES)
def test_filters_of_lakelsm_find_the_rows_of_lakelsm_files(made: Callable[[str], Written], name: str) -> None:
    written = made(name)
    asked = written.case.table.sample(examples(35).max_examples, Random(name))
    assert_found(written.path, written.case.table, written.rows, asked)


def assert_found(path: Path, table: FilterTable, rows: Rows, asked: Sequence[Question]) -> None:
    """lakelsm in this process finds the expected rows of each condition, except for conditions that it refuses."""
    cut = cut_to_micros(rows, table.fields)
    opened = LakelsmTables(TableEngine("local")).table(path)
    refused = 0
    for question, where in conditions(table, asked):
        found = found_by(opened, where)
        assert found in (None, table.answer(question, cut)), where
        refused += found is None
    assert refused < len(asked) // 5


def found_by(table: Table, where: str | None) -> set[int] | None:
    """Return the ids that lakelsm finds in this process; None without a condition, or if it refuses it by name."""
    try:
        return None if where is None else {*table.to_arrow(where=where, columns=["id"]).column("id").to_pylist()}
    except UnsupportedFeatureError:
        return None


@pytest.mark.parametrize("name", ["values", "keys"])
def test_filters_of_lakelsm_find_the_rows_of_java_files(
    java: JavaPaimon, made: Callable[[str], Written], name: str
) -> None:
    written = made(name)
    asked = written.case.table.sample(examples(50).max_examples, Random(name))
    assert_found(written_by_java(java, written), written.case.table, written.rows, asked)


def test_filters_of_lakelsm_find_the_rows_of_pypaimon_files_by_bounds(
    pypaimon: PyPaimon, made: Callable[[str], Written]
) -> None:
    written = made("values without dictionaries")
    table, path = written.case.table, written.path.parent.parent / "python" / "db.db" / "t"
    pypaimon.create(path, table.columns, table.primary_key, ["p"], {"bucket": "1", "metadata.stats-mode": "full"})
    pypaimon.write(path, table.rows())
    asked = table.sample(examples(50).max_examples, Random(5))
    rows = LakelsmTables(TableEngine("local")).read(path)
    assert rows == written.rows
    assert_found(path, table, rows, asked)


@pytest.mark.parametrize("name", ["keys", "values"])
def test_filters_on_spark_find_the_rows_of_lakelsm_files(
    spark: SparkSession, made: Callable[[str], Written], name: str
) -> None:
    from pyspark.sql import functions as F

    written = made(name)
    table = written.case.table
    rows = cut_to_micros(written.rows, table.fields)
    opened = LakelsmTables(TableEngine("spark", spark)).table(written.path)
    asked = conditions(table, table.sample(examples(16).max_examples, Random(name)))
    for at in range(0, len(asked), 16):
        some = asked[at : at + 16]
        frames = [
            opened.read(where=where).select(F.lit(number).alias("question"), "id")
            for number, (_, where) in enumerate(some)
        ]
        joined = frames[0]
        for frame in frames[1:]:
            joined = joined.union(frame)
        found: dict[int, set[int]] = {number: set() for number in range(len(some))}
        for number, one in joined.collect():
            found[number].add(one)
        for number, (question, where) in enumerate(some):
            assert found[number] == table.answer(question, rows), where
