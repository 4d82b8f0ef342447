"""Columns of a new table from the types of a frame, of a mapping or of a schema."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table
from lakelsm.errors import CommitOutcomeUnknownError, InvalidInputError, TableAlreadyExistsError
from lakelsm.types import parse_type

NANOS = ["2020-01-01 00:00:00.123456", None]


class Stream:
    """Rows of another library, which can be read only once."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows: pa.Table | None = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        rows, self.rows = self.rows, None
        assert rows is not None, "taken twice"
        return rows.__arrow_c_stream__(requested_schema)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(str(tmp_path))


def ddl(catalog: Catalog, given: Any, **more: Any) -> str:
    """Return the columns that a table is created with, without the key."""
    columns = str(catalog.create_table("db.t", given, primary_key="id", **more).schema).split("\n")
    catalog.drop_table("db.t")
    assert columns[0].startswith("id BIGINT NOT NULL") and columns[-1] == "PRIMARY KEY (id)"
    return " ".join(columns[1:-1])


PANDAS = {
    "ts TIMESTAMP(6)": pd.to_datetime(NANOS),
    "s TIMESTAMP(6)": pd.to_datetime(NANOS).astype("datetime64[s]"),
    "z TIMESTAMP(6) WITH LOCAL TIME ZONE": pd.to_datetime(NANOS).tz_localize("Europe/Berlin"),
    "v STRING": ["a", None],
    "c STRING": pd.Categorical(["x", "y"]),
    "w STRING": pd.array(["a", None], dtype="string"),
    "d DECIMAL(38, 2)": [Decimal("1.10"), None],
    "e DECIMAL(9, 2)": pd.array([Decimal("1.10"), None], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "day DATE": [dt.date(2020, 1, 1), None],
    "time TIME(3)": [dt.time(1, 2, 3), None],
    "b BOOLEAN": [True, False],
    "n BIGINT": pd.array([1, None], dtype="Int64"),
    "u SMALLINT": np.array([1, 255], np.uint8),
    "f FLOAT": np.array([1, 2], np.float32),
    "l ARRAY<BIGINT>": [[1], None],
    "m ROW<`a` STRING>": [{"a": "x"}, None],
    "y BYTES": [b"a", None],
}
ARROW = {
    "large STRING": pa.array(["a"], pa.large_string()),
    "view STRING": pa.array(["a"], pa.string_view()),
    "dictionary STRING": pa.array(["a"]).dictionary_encode(),
    "ns TIMESTAMP(9)": pa.array([1], pa.timestamp("ns")),
    "us TIMESTAMP(6) WITH LOCAL TIME ZONE": pa.array([1], pa.timestamp("us", "Asia/Tokyo")),
    "s TIMESTAMP(6)": pa.array([1], pa.timestamp("s")),
    "big DECIMAL(20, 0)": pa.array([1], pa.uint64()),
    "half FLOAT": pa.array([1], pa.float16()),
    "list ARRAY<TIMESTAMP(6)>": pa.array([[1]], pa.large_list(pa.field("item", pa.timestamp("ms"), nullable=False))),
    "map MAP<STRING NOT NULL, INT>": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.field("value", pa.int32(), False))),
}


def test_a_pandas_frame_makes_nullable_columns_with_microseconds_and_is_loaded(catalog: Catalog) -> None:
    frame = pd.DataFrame({"id": [1, 2], **{column.split()[0]: values for column, values in PANDAS.items()}})
    assert ddl(catalog, frame) == ", ".join(PANDAS)
    table = catalog.create_table("db.t", frame, primary_key="id", load=True)
    expected, found = pa.Table.from_pandas(frame, preserve_index=False), table.to_arrow()
    for name in ("id", "ts", "z", "v", "d", "day", "time", "n", "l", "y"):
        assert found.column(name).cast(expected.column(name).type).equals(expected.column(name)), name
    assert repr(table.schema).startswith("TableSchema('id BIGINT NOT NULL, ts TIMESTAMP(6), ")
    assert repr(table.schema).endswith("primary_key=['id'])") and "STRING" in table.schema._repr_html_()


@pytest.mark.parametrize("form", ["table", "batch", "reader", "dataset", "stream"])
def test_rows_of_arrow_make_columns_and_are_loaded_in_each_form(catalog: Catalog, form: str) -> None:
    names = ["id", *(column.split()[0] for column in ARROW)]
    key = pa.field("id", pa.int64(), nullable=False)
    fields = [key, *(pa.field(name, values.type, nullable=False) for name, values in zip(names[1:], ARROW.values()))]
    rows = pa.table([pa.array([1]), *ARROW.values()], schema=pa.schema(fields))
    forms = {"table": rows, "batch": rows.to_batches()[0], "dataset": ds.dataset(rows), "stream": Stream(rows)}
    given = forms.get(form, rows.to_reader())
    table = catalog.create_table("db.t", given, primary_key=["id"], load=True)
    assert str(table.schema) == ",\n".join(["id BIGINT NOT NULL", *ARROW]) + "\nPRIMARY KEY (id)"
    assert table.count().rows == 1 and table.to_arrow().column("large").to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("given", "columns", "rows"),
    [
        ([{"id": 1, "v": "a"}, {"id": 2, "w": 1.5}], "v STRING, w DOUBLE", [(1, "a", None), (2, None, 1.5)]),
        ({"id": [1], "d": (Decimal("1.5"),)}, "d DECIMAL(38, 1)", [(1, Decimal("1.5"))]),
        ({"id": np.array([1]), "t": pd.to_datetime(["2020-01-01"])}, "t TIMESTAMP(6)", [(1, pd.Timestamp("2020-01-01"))]),
    ],
)
def test_python_rows_make_columns_and_are_loaded(
    catalog: Catalog, given: Any, columns: str, rows: list[tuple[Any, ...]]
) -> None:
    assert ddl(catalog, given) == columns
    table = catalog.create_table("db.t", given, primary_key="id", load=True)
    assert [tuple(row.values()) for row in table.to_arrow(ordered=True).to_pylist()] == rows


def test_types_by_name_and_schemas_are_used_unchanged(catalog: Catalog) -> None:
    types = {"id": "BIGINT", "a b": "INT NOT NULL", "w": parse_type("DECIMAL(9, 2)"), "x": pa.timestamp("s")}
    assert ddl(catalog, types) == "`a b` INT NOT NULL, w DECIMAL(9, 2), x TIMESTAMP(0)"
    schema = pa.schema([("id", pa.int64()), pa.field("v", pa.string(), nullable=False), ("x", pa.timestamp("ns"))])
    assert ddl(catalog, schema) == "v STRING NOT NULL, x TIMESTAMP(9)"
    assert ddl(catalog, "id BIGINT COMMENT 'it''s', w INT COMMENT ''") == "w INT COMMENT ''"


NULLS = pa.array([[]], pa.list_(pa.null()))
PERIODS = pd.period_range("2020", periods=1, freq="Y")
REFUSED: dict[str, tuple[Any, str]] = {
    "no values": (pd.DataFrame({"id": [1], "x": [None]}), "column 'x': all values are NULL"),
    "no values within": (pa.table({"id": [1], "x": NULLS}), "column 'x': all values are NULL"),
    "a duration": (pd.DataFrame({"id": [1], "x": [dt.timedelta(1)]}), "column 'x': Arrow type duration.* has no"),
    "mixed objects": (pd.DataFrame({"id": [1, 2], "x": [1, "a"]}), "column 'x' of the DataFrame has no Arrow type"),
    "an extension": (pd.DataFrame({"id": [1], "x": PERIODS}), "column 'x'"),
    "a large decimal": (pa.table({"id": [1], "x": pa.array([1], pa.decimal256(50, 2))}), "column 'x': precision 50"),
    "a column twice": (pd.DataFrame([[1, 2]], columns=["id", "id"]), "duplicate column id"),
    "no type": ({"id": "BIGINT", "x": "BLAH"}, "column 'x': .*BLAH"),
    "a wrong type": ({"id": "BIGINT", "x": 5}, "the type of column 'x': expected a text such as 'INT'"),
    "no columns": ({}, "at least one column"),
    "a series": (pd.Series([1]), r"schema.to_frame\(\)"),
    "a number": (5, "schema: expected a DDL text"),
    "a dict of texts and values": ({"id": [1], "x": 5}, "column 'x': expected a list of values"),
    "values of two types": ([{"id": 1}, {"id": "a"}], "column 'id': its values have no common type"),
    "columns of two lengths": ({"id": [1], "x": []}, "schema: columns have different numbers of rows: {'id': 1, 'x': 0}"),
    "a name that is no text": ([{"id": 1, 5: 1}], "the name of a column: .* got 5"),
}


def test_objects_of_polars_are_refused(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    class Frame(Stream):
        @property
        def schema(self) -> dict[str, str]:
            return {"id": "Int64", "x": "Object"}

    class Series(Stream):
        dtype = "Object"

        def __iter__(self) -> Iterator[object]:
            return iter([object()])

    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(DataFrame=Frame, Series=Series, Object="Object"))
    frame = Frame(pa.table({"id": [1], "x": [b"address"]}))
    table = catalog.create_table("db.b", "id INT, x BYTES", primary_key="id")
    for call in (
        lambda: catalog.create_table("db.t", frame, primary_key="id"), lambda: table.write(frame),
        lambda: table.overwrite(frame), lambda: table.delete(keys=frame),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="'x': Polars type Object has no Paimon type"):
            call()
    with pytest.raises(InvalidInputError, match=r"row 1, column 'x': <object object .* does not fit BYTES"):
        table.write({"id": [1], "x": Series(pa.table({"x": [b"address"]}))})


@pytest.mark.parametrize("what", REFUSED)
def test_a_column_without_a_type_in_paimon_is_refused_and_creates_nothing(
    catalog: Catalog, tmp_path: Path, what: str
) -> None:
    given, error = REFUSED[what]
    with pytest.raises(InvalidInputError, match=f"^Table db.t: .*{error}"):
        catalog.create_table("db.t", given, primary_key="id")
    assert list(tmp_path.iterdir()) == []


FINE = {
    "timestamp": (pd.DataFrame({"id": [1, 1], "ts": pd.to_datetime([0, 1], unit="ns")}),
                  r"column 'ts': .*00.000000001 is finer than the inferred type TIMESTAMP\(6\)"),
    "time": (pa.table({"id": [1], "time": pa.array([1], pa.time64("us"))}), r"column 'time': .* TIME\(3\)"),
    "key": (pa.table({"id": pa.array([None], pa.int64())}), "key column 'id'"),
}  # fmt: skip


@pytest.mark.parametrize("what", FINE)
def test_a_load_that_fails_leaves_no_table(catalog: Catalog, tmp_path: Path, what: str) -> None:
    given, error = FINE[what]
    with pytest.raises(InvalidInputError, match=error):
        catalog.create_table("db.t", given, primary_key="id", load=True)
    assert not catalog.table_exists("db.t") and not list(tmp_path.rglob("*.parquet"))
    assert catalog.create_table("db.t", given, primary_key="id").schema.id == 0


def test_a_load_that_fails_after_a_commit_keeps_the_table(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome of the commit may be unknown, or another writer may have caused a conflict."""
    write = Table.write

    def failing(table: Table, rows: Any) -> None:
        write(table, rows)
        raise CommitOutcomeUnknownError("no answer")

    monkeypatch.setattr(Table, "write", failing)
    with pytest.raises(CommitOutcomeUnknownError):
        catalog.create_table("db.t", pa.table({"id": [1]}), primary_key="id", load=True)
    assert catalog.table("db.t").to_arrow().to_pydict() == {"id": [1]}


@pytest.mark.parametrize(
    ("given", "more", "error"),
    [
        ("id BIGINT", {"load": True}, "load: schema has no rows"),
        (pa.schema([("id", pa.int64())]), {"load": True}, "load: schema has no rows"),
        (pa.table({"id": [1]}), {"load": True, "if_not_exists": True}, "load=True cannot be combined with if_not_exists"),
        (pa.table({"id": [1]}), {"load": "yes"}, "load: expected True or False"),
    ],
)
def test_a_load_needs_rows_and_a_new_table(catalog: Catalog, given: Any, more: dict[str, Any], error: str) -> None:
    with pytest.raises(InvalidInputError, match=error):
        catalog.create_table("db.t", given, primary_key="id", **more)
    assert catalog.list_tables() == []


def test_a_load_into_an_existing_table_changes_nothing(catalog: Catalog) -> None:
    catalog.create_table("db.t", pa.table({"id": [1]}), primary_key="id", load=True)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("db.t", pa.table({"id": [2]}), primary_key="id", load=True)
    assert catalog.table("db.t").to_arrow().to_pydict() == {"id": [1]}


def test_a_spark_frame_makes_nullable_columns_and_its_schema_is_used_unchanged(
    spark: SparkSession, catalog: Catalog
) -> None:
    frame = spark.sql("SELECT 1L AS id, array(1) AS a, timestamp_ntz'2020-01-01' AS t, 'x' AS v")
    assert ddl(catalog, frame) == "a ARRAY<INT>, t TIMESTAMP(6), v STRING"
    assert ddl(catalog, frame.schema) == "a ARRAY<INT NOT NULL> NOT NULL, t TIMESTAMP(6) NOT NULL, v STRING NOT NULL"
    table = catalog.create_table("db.u", frame, primary_key="id", load=True)
    assert table.to_arrow().to_pydict()["a"] == [[1]]
    with pytest.raises(InvalidInputError, match="column 'x': Spark type void"):
        catalog.create_table("db.v", spark.sql("SELECT 1L AS id, NULL AS x"), primary_key="id")
