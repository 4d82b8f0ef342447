"""Definitions of lookups, resolved for the present state of a table."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.environment import Environment
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.lookup.lookup_definition import (
    DefinedLookup,
    LookupDefinition,
    PartitionChoice,
    RefreshPolicy,
    checked_inner,
    checked_lookup_options,
    partition_condition,
)
from lakelsm.options import TableOptions
from lakelsm.predicate.evaluation import matching
from lakelsm.predicate.predicate import Compare
from lakelsm.schema_changes import RenameColumn, SetOption, UpdateColumnComment, UpdateColumnType
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import parse_type

Options = dict[str, str]


def made(folder: Path, **options: str) -> Table:
    return Catalog(str(folder)).create_table(
        "db.t",
        "dt STRING, id INT, name STRING, n INT",
        primary_key=["id", "dt"],
        partition_by=["dt"],
        options={"bucket": 1, **{key.replace("_", "."): text for key, text in options.items()}},
    )


def resolved(table: Table, **request: Any) -> DefinedLookup:
    return LookupDefinition(**{"options": {}, **request}).of_table(table._store())


def test_the_key_is_the_primary_key_in_its_order_and_columns_are_all(tmp_path: Path) -> None:
    found = resolved(made(tmp_path))
    assert (found.key, found.columns) == (("id", "dt"), ("dt", "id", "name", "n"))
    assert found.has_one_row_per_key
    assert not found.adds_partitions


def test_names_are_found_in_any_case_and_kept_as_labels(tmp_path: Path) -> None:
    found = resolved(made(tmp_path), columns=("NAME",), key=("Dt", "ID"), where="N > 1")
    assert (found.key, found.columns, found.labels) == (("dt", "id"), ("name",), ("NAME",))
    assert found.spec(None).predicate == Compare("n", ">", 1)


@pytest.mark.parametrize(("key", "expected"), [(("name",), False), (("id",), False), (("id", "dt", "n"), True)])
def test_a_key_with_all_columns_of_the_primary_key_has_one_row(
    key: tuple[str, ...], expected: bool, tmp_path: Path
) -> None:
    assert resolved(made(tmp_path), key=key).has_one_row_per_key is expected


@pytest.mark.parametrize(
    ("text", "key", "spec_key", "one_row"),
    [
        ("max_pt()", None, ("id", "dt"), True),
        ("max_two_pt()", None, ("id", "dt"), False),
        ("dt=a", None, ("id", "dt"), True),
        ("dt=a;dt=b", ("id",), ("id", "dt"), False),
        ("dt=a;dt=b", ("id", "dt"), ("id", "dt"), True),
        ("dt=a", ("name",), ("name",), False),
    ],
)
def test_chosen_partitions_complete_the_key(
    text: str, key: tuple[str, ...] | None, spec_key: tuple[str, ...], one_row: bool, tmp_path: Path
) -> None:
    found = resolved(made(tmp_path), key=key, options={"scan.partitions": text})
    assert found.choice is not None
    spec = found.spec(found.choice.partitions(found.store, None))
    assert (spec.key, found.has_one_row_per_key) == (spec_key, one_row)
    assert spec.predicate is not None


def test_a_primary_key_without_the_partition_may_have_many_rows_and_gets_no_partitions(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table(
        "db.t",
        "dt STRING, id INT",
        primary_key=["id"],
        partition_by=["dt"],
        options={"bucket": 1, "lakelsm.key-per-partition": True},
    )
    assert not resolved(table).has_one_row_per_key
    found = resolved(table, options={"scan.partitions": "max_pt()"})
    assert found.has_one_row_per_key
    assert not found.adds_partitions


@pytest.mark.parametrize(
    ("request_of", "fault"),
    [
        ({"columns": ("nope",)}, "nope"),
        ({"key": ("nope",)}, "nope"),
        ({"columns": ("n", "N")}, "columns: n, n has a column twice"),
        ({"key": ("id", "ID")}, "key: id, id has a column twice"),
        ({"options": {"lookup.cache": "rocks"}}, "option 'lookup.cache': 'rocks' is not one of"),
        ({"options": {"scan.partitions": "x=1"}}, "'x' is not a partition column. Partition columns: dt"),
    ],
)
def test_unknown_columns_and_options_are_refused_by_name(
    request_of: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(fault)) as reported:
        resolved(made(tmp_path), **request_of)
    assert "scan.partitions" in str(reported.value) or "Table db.t" in str(reported.value)


def test_options_of_the_call_override_those_of_the_table(tmp_path: Path) -> None:
    table = made(tmp_path, lookup_cache="full", **{"lookup_dynamic-partition": "max_pt()"})
    found = resolved(table, options=checked_lookup_options({"lookup.dynamic-partition": "dt=a"}))
    assert found.store.options.scan_partitions == "dt=a"
    assert found.store.options.lookup_cache.value == "full"
    assert resolved(table).store.options.scan_partitions == "max_pt()"


@pytest.mark.parametrize("key", ["bucket", "merge-engine", "nope", "lookup.merge-buffer-size"])
def test_options_that_are_not_of_lookups_are_refused_by_name(key: str) -> None:
    with pytest.raises(InvalidInputError, match=f"options: '{key}' is not an option of lookups"):
        checked_lookup_options({"lookup.cache": "full", key: "1"})


def test_an_option_by_two_keys_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="one option is given by two of its keys"):
        checked_lookup_options({"scan.partitions": "dt=a", "lookup.dynamic-partition": "dt=b"})


@pytest.mark.parametrize(
    ("columns", "change", "same"),
    [
        (("n",), SetOption("lookup.cache-rows", "5"), True),
        (("n",), UpdateColumnComment("n", "x"), True),
        (("n",), UpdateColumnType("n", parse_type("BIGINT")), False),
        (("name",), UpdateColumnType("n", parse_type("BIGINT")), True),
        (("name",), RenameColumn("n", "m"), True),
        (None, RenameColumn("n", "m"), False),
    ],
)
def test_another_schema_needs_another_cache_only_if_it_changes_the_fields_read(
    columns: tuple[str, ...] | None, change: Any, same: bool, tmp_path: Path
) -> None:
    table = made(tmp_path)
    before = resolved(table, columns=columns)
    Catalog(str(tmp_path)).alter_table("db.t", change)
    assert resolved(table, columns=columns).matches(before) is same


def test_how_is_left_or_inner() -> None:
    assert [checked_inner(how) for how in ("left", "inner")] == [False, True]
    for wrong in ("outer", " ", None, 1):
        with pytest.raises(InvalidInputError, match="'left' or 'inner'"):
            checked_inner(wrong)


PERIODS = "lookup.refresh.time-periods-blacklist"


def at(shown: str, offset: int = 0) -> Environment:
    """An environment whose local clock, ``offset`` seconds ahead of UTC, shows a time."""
    millis = int(datetime.fromisoformat(shown).replace(tzinfo=timezone.utc).timestamp() * 1000) - offset * 1000
    return Environment(clock=lambda: millis, local_offset=lambda _: offset)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 10.0),
        ({"continuous.discovery-interval": "3 s"}, 3.0),
        ({"continuous.discovery-interval": "3 s", "lookup.continuous.discovery-interval": "5 min"}, 300.0),
        ({"lookup.continuous.discovery-interval": "0 s"}, 0.0),
    ],
)
def test_the_interval_is_that_of_lookups_or_else_that_of_streams(options: dict[str, str], expected: float) -> None:
    assert RefreshPolicy.of(TableOptions.parse(options)).interval == expected


@pytest.mark.parametrize("offset", [0, 7200, -34200])
@pytest.mark.parametrize(
    ("shown", "quiet"),
    [
        ("2026-01-01 00:59:59.999", False),
        ("2026-01-01 01:00:00", True),
        ("2026-01-01 02:00:00", True),
        ("2026-01-01 02:00:00.001", False),
        ("2026-02-01 12:00:30", True),
        ("2026-03-01 12:00", False),
    ],
)
def test_periods_use_the_local_clock_and_include_their_ends(shown: str, quiet: bool, offset: int) -> None:
    periods = "2026-01-01 01:00->2026-01-01 02:00, 2026-02-01 12:00 -> 2026-02-01 13:00"
    policy = RefreshPolicy.of(TableOptions.parse({PERIODS: periods}))
    assert policy.is_quiet(at(shown, offset)) is quiet


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "2026-01-01 01:00",
        "2026-01-01 01:00->",
        "2026-01-01 02:00->2026-01-01 01:00",
        "2026-01-01 01:00->2026-01-01 02:00->2026-01-01 03:00",
        "2026-02-30 01:00->2026-03-01 02:00",
        "2026-01-01 24:00->2026-01-02 02:00",
        "2026-01-01 01:00:00->2026-01-01 02:00:00",
        "2026-01-01 01:00->2026-01-01 02:00,",
    ],
)
def test_malformed_periods_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"^option '{PERIODS}': "):
        TableOptions.parse({PERIODS: text})


def test_blank_text_has_no_periods() -> None:
    assert not RefreshPolicy.of(TableOptions.parse({PERIODS: " "})).is_quiet(at("2026-01-01 00:00"))


ROWS = [(2024, "b", 1), (2024, "a", 1), (2025, "a", 1), (2025, "c", 1), (2025, "b", 1), (2023, "z", 1)]


def table(folder: Path, rows: list[tuple[Any, ...]] = ROWS, types: str = "y INT, m STRING, k INT") -> Table:
    made = Catalog(str(folder)).create_table(
        "db.t", types, primary_key=["y", "m", "k"], partition_by=["y", "m"], options={"bucket": 1}
    )
    if rows:
        made.write(pa.table(dict(zip("ymk", zip(*rows)))).cast(made.to_arrow().schema))
    return made


def store_of(made: Table, text: str) -> TableStore:
    store = made._store()
    return store.with_schema(store.schema.with_options({**store.schema.options, "scan.partitions": text}))


def chosen(made: Table, text: str) -> list[str]:
    store = store_of(made, text)
    choice = PartitionChoice.of(store)
    assert choice is not None
    return [store.partition_label(each) for each in choice.partitions(store, store.snapshots.latest())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max_pt()", ["y=2025/m=c"]),
        (" MAX_PT() ", ["y=2025/m=c"]),
        ("max_two_pt()", ["y=2025/m=c", "y=2025/m=b"]),
        ("y=max_pt()", ["y=2025/m=c", "y=2025/m=b", "y=2025/m=a"]),
        ("M=max_pt(), y=Max_Pt()", ["y=2025/m=c"]),
        ("y=2024,m=a", ["y=2024/m=a"]),
        ("y=2024,m=a;y=1999,m=q; m=a , y=2024;", ["y=2024/m=a", "y=1999/m=q"]),
    ],
)
def test_named_partitions_and_the_greatest_ones(text: str, expected: list[str], tmp_path: Path) -> None:
    assert chosen(table(tmp_path), text) == expected


def test_an_empty_table_has_no_greatest_partition(tmp_path: Path) -> None:
    made = table(tmp_path, [])
    assert chosen(made, "max_pt()") == chosen(made, "y=max_pt()") == []


def test_partitions_without_files_are_not_the_greatest(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.overwrite(made.to_arrow().slice(0, 0), partition={"y": 2025})
    assert chosen(made, "max_pt()") == ["y=2024/m=b"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "'' is not a partition"),
        ("y", "'y' is not a partition"),
        ("max_pt", "'max_pt' is not a partition"),
        ("y=2024", "partition column m is missing"),
        ("y=2024,y=2025,m=a", "names 'y' twice"),
        ("y=x,m=a", "partition value y: expected a value of"),
        ("k=1,m=a", "'k' is not a partition column. Partition columns: y, m"),
        ("m=max_pt()", "the named columns are not the first ones of the partition columns y, m"),
        ("y=2024,m=max_pt()", "must be the value of each named column"),
        ("y=max_pt();y=max_pt()", "must be the value of each named column"),
        ("y=max_two_pt()", "must be the value of each named column"),
    ],
)
def test_other_texts_are_refused_by_name(text: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(f"option 'scan.partitions' = '{text}'") + ".*" + fault):
        PartitionChoice.of(store_of(table(tmp_path, []), text))


def test_a_table_without_partitions_has_none_to_choose(tmp_path: Path) -> None:
    made = Catalog(str(tmp_path)).create_table("db.t", "k INT", primary_key=["k"], options={"bucket": 1})
    assert PartitionChoice.of(made._store()) is None
    with pytest.raises(InvalidInputError, match=r"table db.t has no partitions. Leave the option out"):
        PartitionChoice.of(store_of(made, "max_pt()"))


def test_the_condition_of_partitions_is_true_only_for_their_rows(tmp_path: Path) -> None:
    made = table(tmp_path)
    store = store_of(made, "y=2024,m=a;y=2025,m=c")
    choice = PartitionChoice.of(store)
    assert choice is not None
    rows = made.to_arrow()
    kept = rows.filter(matching(partition_condition(store, choice.partitions(store, None)), rows))
    assert sorted(zip(*kept.select(["y", "m"]).to_pydict().values())) == [(2024, "a"), (2025, "c")]
    assert len(rows.filter(matching(partition_condition(store, ()), rows))) == 0


def test_partitions_of_floats_cannot_be_chosen(tmp_path: Path) -> None:
    made = table(tmp_path, [], "y DOUBLE, m STRING, k INT")
    store = store_of(made, "y=1.0,m=a")
    choice = PartitionChoice.of(store)
    assert choice is not None
    with pytest.raises(UnsupportedFeatureError, match=r"partition column 'y' \(DOUBLE NOT NULL\)"):
        partition_condition(store, choice.partitions(store, None))
