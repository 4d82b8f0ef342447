"""Tables shared with another engine (pypaimon, Java Paimon): each reads and continues what the other wrote."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.snapshots.manifest_scan import read_live_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import parse_columns
from tests.interop.arrow_merge import bucket_keys, file_levels
from tests.interop.conftest import PEERS
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon, Peer
from tests.interop.samples import ALL_TYPES, UTC, all_types_columns, all_types_rows, column_name, rows_of
from tests.interop.value_form import Rows, cut_to_micros, in_order, rows_of_arrow


def _form(columns: str, table: pa.Table) -> Rows:
    return rows_of_arrow(table, parse_columns(columns))


@pytest.mark.parametrize(
    ("engine", "peer"),
    [*(("local", peer) for peer in PEERS), pytest.param("spark", "java-paimon", marks=pytest.mark.spark)],
    indirect=True,
)
def test_all_types_written_by_lakelsm(either: LakelsmTables, peer: Peer, path: Path) -> None:
    columns = all_types_columns()
    expected = either.held(_form(columns, all_types_rows()), parse_columns(columns))
    either.create(path, columns, ["k"], options={"bucket": "2"})
    either.write(path, all_types_rows())
    assert peer.read(path) == expected
    assert either.read(path) == expected

    either.compact(path)
    assert set(file_levels(str(path))) == {5}
    assert peer.read(path) == expected

    peer.write(path, all_types_rows(first_key=3))
    both = {row[0]: row for row in expected} | {row[0]: row for row in _form(columns, all_types_rows(first_key=3))}
    assert either.read_nanos(path) == in_order(both.values())
    # pypaimon's merge cuts nanoseconds.
    fields = parse_columns(columns)
    assert cut_to_micros(peer.read(path), fields) == cut_to_micros(in_order(both.values()), fields)
    assert peer.name == "pypaimon" or peer.read(path) == in_order(both.values())


def test_all_types_written_by_the_peer(ours: LakelsmTables, peer: Peer, path: Path) -> None:
    columns = all_types_columns()
    expected = _form(columns, all_types_rows())
    peer.create(path, columns, ["k"], options={"bucket": "2"})
    peer.write(path, all_types_rows())
    assert peer.read(path) == expected
    assert ours.read_nanos(path) == expected

    ours.compact(path)
    assert ours.read_nanos(path) == expected
    assert peer.read(path) == expected, "lakelsm's compaction keeps nanoseconds"


FAR = [dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 123000)]


@pytest.mark.parametrize("beside", ["TIMESTAMP(6)", "TIMESTAMP(9)"])
def test_timestamps_of_any_year_are_shared(ours: LakelsmTables, peer: Peer, path: Path, beside: str) -> None:
    columns = f"k INT, a TIMESTAMP(3), b TIMESTAMP(6), c TIMESTAMP(0) WITH LOCAL TIME ZONE, d {beside}"
    zoned = [time.replace(microsecond=0, tzinfo=UTC) for time in FAR]
    rows = rows_of(columns, {"k": [1, 2, 3], "a": FAR, "b": FAR, "c": zoned, "d": [None] * 3})
    ours.create(path, columns, ["k"], options={"bucket": "1"})
    ours.write(path, rows)
    assert ours.read(path) == _form(columns, rows)
    ours.compact(path)
    assert ours.read(path) == _form(columns, rows)
    assert peer.read(path) == _form(columns, rows)


def test_statistics_of_lakelsm_never_hide_a_row_from_the_peer(ours: LakelsmTables, peer: Peer, path: Path) -> None:
    columns = all_types_columns()
    fields = parse_columns(columns)
    ours.create(path, columns, ["k"], options={"bucket": "1"})
    ours.write(path, all_types_rows())
    ours.compact(path)
    rows = ours.held(_form(columns, all_types_rows()), fields)
    for kind in ("TINYINT", "BIGINT", "STRING", "VARCHAR(20)", "CHAR(5)", "BOOLEAN"):
        at = [field.name for field in fields].index(column_name(kind))
        for value in ALL_TYPES[kind]:
            found = peer.read(path, ("equal", fields[at].name, value))
            assert found == in_order(row for row in rows if row[at] == value), (kind, value)
    assert peer.read(path, ("less_than", "k", 2)) == in_order(row for row in rows if row[0] < 2)
    assert peer.read(path, ("greater_or_equal", "k", 2)) == in_order(row for row in rows if row[0] >= 2)


def test_keys_of_every_type_have_the_same_buckets(ours: LakelsmTables, peer: Peer, path: Path) -> None:
    kinds = [kind for kind in ALL_TYPES if not kind.startswith(("ARRAY", "MAP", "ROW", "TIMESTAMP(9)"))]
    names = [column_name(kind) for kind in kinds]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds)) + ", v STRING"

    def rows(value: str) -> pa.Table:
        values = {name: [one for one in ALL_TYPES[kind] for _ in range(4)] for name, kind in zip(names, kinds)}
        for kind in ("FLOAT", "DOUBLE"):  # docs/keys.md has the bucket of -0.0; test_float_keys tests it.
            values[column_name(kind)] = [0.5 if one == 0 else one for one in values[column_name(kind)]]
        values["int"] = list(range(12))
        return rows_of(columns, {**values, "v": [value] * 12})

    ours.create(path, columns, names, options={"bucket": "5"})
    ours.write(path, rows("ours"))
    peer.write(path, rows("theirs"))
    assert peer.read(path) == _form(columns, rows("theirs"))
    assert ours.read(path) == _form(columns, rows("theirs"))
    ours.write(path, rows("ours again"))
    ours.compact(path)
    assert peer.read(path) == _form(columns, rows("ours again"))
    assert len({entry.bucket for entry in _entries(path)}) > 2


PARTITIONS = ["plain", "a/b=c d%", "中文", "", " ", "x:y*z?", "{[^]}", "#'\"\\", "dt=1"]


@pytest.mark.parametrize("legacy", ["true", "false"])
def test_partitions_with_odd_names_are_shared(ours: LakelsmTables, peer: Peer, path: Path, legacy: str) -> None:
    columns = "p STRING, d DATE, b BOOLEAN, k INT, v STRING"
    days = ALL_TYPES["DATE"]

    def rows(value: str) -> pa.Table:
        values = {"p": PARTITIONS, "d": [days[at % 3] for at in range(9)], "b": [at % 2 == 0 for at in range(9)]}
        return rows_of(columns, {**values, "k": list(range(9)), "v": [value] * 9})

    ours.create(path, columns, ["p", "d", "b", "k"], ["p", "d", "b"], {"bucket": "1", "partition.legacy-name": legacy})
    ours.write(path, rows("ours"))
    mine = {directory.relative_to(path) for directory in path.glob("**/bucket-0")}
    assert peer.read(path) == _form(columns, rows("ours"))
    peer.write(path, rows("theirs"))
    assert {directory.relative_to(path) for directory in path.glob("**/bucket-0")} == mine
    assert ours.read(path) == peer.read(path) == _form(columns, rows("theirs"))
    ours.compact(path)
    assert peer.read(path) == _form(columns, rows("theirs"))
    for at, name in enumerate(PARTITIONS):
        assert peer.read(path, ("equal", "p", name)) == [row for row in peer.read(path) if row[3] == at]


PARTITION_TYPES = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 7],
    "BIGINT": [-(2**63), 12],
    "FLOAT": [8.24e11, 1.4e-45, -0.0, 0.0, float("nan"), 2.0**31],
    "DOUBLE": [5e-324, 5e22, 1e10, -0.0, float("-inf"), 0.001],
    "DECIMAL(20, 3)": [Decimal("0.000"), Decimal("-1.500"), Decimal("12345678901234567.890")],
    "DECIMAL(38, 10)": [Decimal("0E-10"), Decimal("1E-10")],
    "CHAR(5)": ["ab", "ab "],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "TIME(3)": [dt.time(0), dt.time(23, 59, 59, 7000)],
    "TIMESTAMP(3)": [dt.datetime(2024, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 120000)],
    "TIMESTAMP(6)": [dt.datetime(1900, 1, 1, 1, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)],
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": [dt.datetime(2024, 7, 1, tzinfo=UTC), dt.datetime(1960, 1, 1, tzinfo=UTC)],
}


@pytest.mark.parametrize("legacy", ["true", "false"])
def test_partitions_of_every_type_are_shared(ours: LakelsmTables, java: JavaPaimon, path: Path, legacy: str) -> None:
    names = [column_name(kind) for kind in PARTITION_TYPES]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, PARTITION_TYPES)) + ", k INT, v STRING"

    def rows(value: str) -> pa.Table:
        values = {
            name: [found[at % len(found)] for at in range(12)] for name, found in zip(names, PARTITION_TYPES.values())
        }
        return rows_of(columns, {**values, "k": list(range(12)), "v": [value] * 12})

    ours.create(path, columns, [*names, "k"], names, {"bucket": "1", "partition.legacy-name": legacy})
    ours.write(path, rows("ours"))
    mine = {directory.relative_to(path) for directory in path.glob("**/bucket-0")}
    assert len(mine) == 6
    assert java.read(path) == _form(columns, rows("ours"))
    java.write(path, rows("theirs"))
    assert {directory.relative_to(path) for directory in path.glob("**/bucket-0")} == mine
    assert ours.read(path) == java.read(path) == _form(columns, rows("theirs"))
    ours.compact(path)
    assert ours.read(path) == java.read(path) == _form(columns, rows("theirs"))


def test_not_null_inside_nested_columns_is_shared(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    columns = (
        "k INT, r ROW<x INT NOT NULL, q ROW<z STRING NOT NULL> NOT NULL>, a ARRAY<ROW<p INT NOT NULL>>, "
        "m MAP<STRING, BIGINT NOT NULL>, l ARRAY<ARRAY<INT NOT NULL> NOT NULL>, "
        "t ROW<i TIMESTAMP(3) WITH LOCAL TIME ZONE, s STRING NOT NULL>"
    )

    def rows(first: int) -> pa.Table:
        values = {
            "r": [{"x": 1, "q": {"z": "a"}}, None, None],
            "a": [[{"p": 1}, None], None, []],
            "m": [[("a", 1)], None, []],
            "l": [[[1, 2], []], None, []],
            "t": [{"i": ALL_TYPES["TIMESTAMP(3) WITH LOCAL TIME ZONE"][0], "s": "s"}, None, None],
        }
        return rows_of(columns, {"k": list(range(first, first + 3)), **values})

    ours.create(path, columns, ["k"], options={"bucket": "1"})
    ours.write(path, rows(0))
    java.write(path, rows(2))
    both = in_order({row[0]: row for row in [*_form(columns, rows(0)), *_form(columns, rows(2))]}.values())
    assert ours.read(path) == java.read(path) == both
    ours.compact(path)
    assert ours.read(path) == java.read(path) == both


@pytest.mark.parametrize("codec", ["snappy", "deflate", "bzip2", "xz", "null"])
def test_manifests_of_every_codec_are_shared(ours: LakelsmTables, java: JavaPaimon, path: Path, codec: str) -> None:
    columns = "k INT, v STRING"
    rows = [rows_of(columns, {"k": [at, at + 1], "v": ["a", f"b{at}"]}) for at in range(2)]
    ours.create(path, columns, ["k"], options={"bucket": "1", "manifest.compression": codec})
    ours.write(path, rows[0])
    assert java.read(path) == _form(columns, rows[0])
    java.write(path, rows[1])
    assert ours.read(path) == java.read(path) == [(0, "a"), (1, "a"), (2, "b1")]
    assert all(codec.encode() in file.read_bytes() for file in (path / "manifest").iterdir())


def test_null_partitions_of_pypaimon_are_read(ours: LakelsmTables, peers: Callable[[str], Peer], path: Path) -> None:
    columns = "p STRING, d DATE, k INT, v STRING"

    def rows(value: str) -> pa.Table:
        values = {"p": [None, "", "x"], "d": [None, None, ALL_TYPES["DATE"][0]], "k": [1, 1, 1]}
        return rows_of(columns, {**values, "v": [value] * 3})

    peer = peers("pypaimon")
    peer.create(path, columns, ["p", "d", "k"], ["p", "d"], {"bucket": "1", "primary-key.nullable": "true"})
    peer.write(path, rows("theirs"))
    assert ours.read(path) == _form(columns, rows("theirs"))
    ours.write(path, rows("ours"))
    assert peer.read(path) == _form(columns, rows("ours"))
    ours.compact(path)
    assert peer.read(path) == _form(columns, rows("ours"))


def test_deletes_of_either_engine_are_shared(ours: LakelsmTables, peer: Peer, path: Path) -> None:
    columns = "k INT, v STRING, op STRING"

    def rows(keys: Sequence[int], op: str, value: str) -> pa.Table:
        return rows_of(columns, {"k": list(keys), "v": [value] * len(keys), "op": [op] * len(keys)})

    options = {"bucket": "2", "rowkind.field": "op", "num-sorted-run.compaction-trigger": "20"}
    ours.create(path, columns, ["k"], options=options)
    ours.write(path, rows(range(20), "+I", "a"))
    peer.write(path, rows(range(0, 20, 2), "-D", "b"))
    assert ours.read(path) == peer.read(path) == _form(columns, rows(range(1, 20, 2), "+I", "a"))
    ours.write(path, rows(range(1, 20, 4), "-D", "c"))
    left = _form(columns, rows(range(3, 20, 4), "+I", "a"))
    assert ours.read(path) == peer.read(path) == left
    ours.compact(path)
    assert ours.read(path) == peer.read(path) == left
    peer.write(path, rows([0, 3], "+U", "d"))
    back = in_order([*_form(columns, rows([0, 3], "+U", "d")), *_form(columns, rows(range(7, 20, 4), "+I", "a"))])
    assert ours.read(path) == peer.read(path) == back


def test_deletes_that_pypaimon_does_not_count_return_no_rows(
    ours: LakelsmTables, peers: Callable[[str], Peer], path: Path
) -> None:
    """pypaimon counts no deletes (docs/format.md 19.2): it returns one as a row if its file is a split alone."""
    columns = "k INT, v STRING, op STRING"
    peer = peers("pypaimon")
    peer.create(path, columns, ["k"], options={"bucket": "1", "rowkind.field": "op"})
    peer.write(path, rows_of(columns, {"k": [1, 2], "v": ["a", "b"], "op": ["+I", "-D"]}))
    assert len(peer.read(path)) == 2
    assert ours.read(path) == [(1, "a", "+I")]
    peer.write(path, rows_of(columns, {"k": [9], "v": ["gone"], "op": ["-D"]}))
    assert ours.read(path) == peer.read(path) == [(1, "a", "+I")]
    ours.compact(path)
    assert ours.read(path) == peer.read(path) == [(1, "a", "+I")]


def test_row_kinds_of_lakelsm_and_java_are_shared(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    columns = "k INT, v STRING"
    rows = rows_of(columns, {"k": [1, 2, 3, 4], "v": ["a", "b", "c", "d"]})
    ours.create(path, columns, ["k"], options={"bucket": "1"})
    ours.write(path, rows)
    java.write(path, rows, ["-D", "-U", "+U", "+I"])
    assert ours.read(path) == java.read(path) == [(3, "c"), (4, "d")]
    ours.write(path, rows, ["+I", "+I", "-D", "-U"])
    assert ours.read(path) == java.read(path) == [(1, "a"), (2, "b")]
    java.compact(path)
    assert ours.read(path) == java.read(path) == [(1, "a"), (2, "b")]


BEFORE = "k INT, a INT, b STRING, c FLOAT, d TIMESTAMP(3), e DECIMAL(9, 2), r ROW<x INT, y STRING>"
AFTER = "k INT, a BIGINT, bb STRING, c DOUBLE, e DECIMAL(20, 2), r ROW<x INT, y STRING>, f TIMESTAMP(6)"
CHANGES = (
    ("type", "a", "BIGINT"),
    ("rename", "b", "bb"),
    ("type", "c", "DOUBLE"),
    ("drop", "d"),
    ("type", "e", "DECIMAL(20, 2)"),
    ("add", "f", "TIMESTAMP(6)"),
)


def _old_rows() -> pa.Table:
    kinds = ("INT", "STRING", "FLOAT", "TIMESTAMP(3)", "DECIMAL(9, 2)", "ROW<x INT, y STRING>")
    values = {name: [*ALL_TYPES[kind], None] for name, kind in zip("abcder", kinds)}
    values["c"] = [1.5, -0.25, float("inf"), None]
    return rows_of(BEFORE, {"k": [1, 2, 3, 4], **values})


def _new_rows(key: int) -> pa.Table:
    kinds = ("BIGINT", "STRING", "DOUBLE", "DECIMAL(18, 4)", "ROW<x INT, y STRING>", "TIMESTAMP(6)")
    names = ("a", "bb", "c", "e", "r", "f")
    values: dict[str, list[Any]] = {name: list(ALL_TYPES[kind]) for name, kind in zip(names, kinds)}
    values["e"] = [ALL_TYPES["DECIMAL(9, 2)"][0]] * 3
    return rows_of(AFTER, {"k": [key, key + 1, key + 2], **values})


def _old_rows_now() -> pa.Table:
    old = _old_rows().rename_columns(["k", "a", "bb", "c", "d", "e", "r"]).drop_columns(["d"])
    now = old.append_column("f", pa.nulls(len(old), pa.timestamp("us")))
    target = rows_of(AFTER, {field.name: [] for field in parse_columns(AFTER)}).schema
    return now.select(target.names).cast(target)


@pytest.mark.parametrize("changed_by_lakelsm", [True, False], ids=["lakelsm-alters", "peer-alters"])
def test_schema_evolution_is_shared(ours: LakelsmTables, peer: Peer, path: Path, changed_by_lakelsm: bool) -> None:
    fields = parse_columns(AFTER)
    first, second = (ours, peer) if changed_by_lakelsm else (peer, ours)
    first.create(path, BEFORE, ["k"], options={"bucket": "1"})
    first.write(path, _old_rows())
    first.alter(path, *CHANGES)
    assert ours.read(path) == peer.read(path) == rows_of_arrow(_old_rows_now(), fields)
    second.write(path, _new_rows(4))
    now = in_order([*rows_of_arrow(_old_rows_now().slice(0, 3), fields), *rows_of_arrow(_new_rows(4), fields)])
    assert ours.read(path) == peer.read(path) == now
    ours.compact(path)
    assert ours.read(path) == peer.read(path) == now
    first.write(path, _new_rows(6))
    assert len(peer.read(path)) == 8
    assert ours.read(path) == peer.read(path)


@pytest.mark.parametrize("begun_by_lakelsm", [True, False], ids=["lakelsm-begins", "peer-begins"])
def test_dynamic_buckets_are_continued(ours: LakelsmTables, peer: Peer, path: Path, begun_by_lakelsm: bool) -> None:
    columns = "dt STRING, k STRING, v INT"

    def rows(keys: Sequence[int], value: int) -> pa.Table:
        days = ["2024" if key % 3 else "2025" for key in keys]
        return rows_of(columns, {"dt": days, "k": [f"key {key}" for key in keys], "v": [value] * len(keys)})

    first, second = (ours, peer) if begun_by_lakelsm else (peer, ours)
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "5"}
    first.create(path, columns, ["dt", "k"], ["dt"], options)
    first.write(path, rows(range(30), 1))
    assert ours.read(path) == peer.read(path) == _form(columns, rows(range(30), 1))
    second.write(path, rows(range(20, 60), 2))
    first.write(path, rows(range(50, 70), 3))
    second.write(path, rows(range(0, 5), 4))
    expected = _form(columns, pa.concat_tables([
        rows(range(5), 4), rows(range(5, 20), 1), rows(range(20, 50), 2), rows(range(50, 70), 3)
    ]))  # fmt: skip
    assert ours.read(path) == peer.read(path) == expected
    owners = bucket_keys(str(path))
    keys = [key for bucket in owners.values() for key in bucket]
    assert len(keys) == len(set(keys)) == 70, "no key is in two buckets"
    assert len(owners) >= 14
    ours.compact(path)
    assert ours.read(path) == peer.read(path) == expected


def test_engines_upsert_and_compact_in_turn(ours: LakelsmTables, peer: Peer, path: Path) -> None:
    columns = "k BIGINT, v STRING"
    state: dict[int, str] = {}
    peer.create(path, columns, ["k"], options={"bucket": "2", "num-sorted-run.compaction-trigger": "3"})
    for turn in range(8):
        keys = range(turn * 7, turn * 7 + 30)
        batch = rows_of(columns, {"k": list(keys), "v": [f"turn {turn}"] * 30})
        state |= dict.fromkeys(keys, f"turn {turn}")
        (peer if turn % 2 == 0 else ours).write(path, batch)
        if turn == 5 and peer.compacts:
            peer.compact(path)
        expected = in_order(state.items())
        assert peer.read(path) == expected
    assert ours.read(path) == expected
    ours.compact(path)
    assert ours.read(path) == peer.read(path) == expected


def _entries(path: Path) -> list[Any]:
    store = TableStore.open(str(path))
    snapshot = store.snapshots.latest()
    assert snapshot is not None
    return list(read_live_entries(store.file_io, store.paths, snapshot))
