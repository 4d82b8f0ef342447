"""Table.lookup: its arguments, and lookups by the caches that it opens."""

from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Lookup, Table
from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.lookup import cache_name, chosen_cache, opened_cache
from lakelsm.lookup.lookup_definition import LookupDefinition
from lakelsm.lookup.partial.partial_cache import PartialCache
from lakelsm.lookup.service.service_access import ServerAddress, publish
from lakelsm.predicate.predicate import Compare
from lakelsm.schema_changes import SetOption
from tests.processes import PATIENCE


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Catalog(str(tmp_path / "wh")).create_table(
        "db.t",
        "p STRING, k INT, v STRING",
        primary_key=["p", "k"],
        partition_by=["p"],
        options={"bucket": 2, "lookup.continuous.discovery-interval": "1 h"},
    )
    made.write(pa.table({"p": ["a", "a", "b"], "k": pa.array([1, 2, 1], pa.int32()), "v": ["x", "y", "z"]}))
    return made


def write(table: Table, p: str, k: int, v: str) -> None:
    table.write(pa.table({"p": [p], "k": pa.array([k], pa.int32()), "v": [v]}))


def test_rows_are_found_by_the_primary_key(table: Table) -> None:
    with table.lookup(columns=["v"]) as lookup:
        assert isinstance(lookup, Lookup)
        assert (lookup.get("a", 1), lookup.get("a", k=2), lookup.get("c", 1)) == ({"v": "x"}, {"v": "y"}, None)
        keys = pa.table({"K": [1, 2, 9], "P": ["b", "a", "a"]})
        assert lookup.get_many(keys).to_pydict() == {"P": ["b", "a", "a"], "K": [1, 2, 9], "v": ["z", "y", None]}
        assert lookup.staleness().cache == "partial"


def test_the_refresh_argument_overrides_the_tables_option(table: Table) -> None:
    with table.lookup(refresh=0) as each, table.lookup(refresh="never") as never, table.lookup() as hourly:
        write(table, "a", 1, "new")
        found = [lookup.get("a", 1) for lookup in (each, never, hourly)]
        assert [row and row["v"] for row in found] == ["new", "x", "x"]
        never.refresh()
        assert never.get("a", 1) == {"p": "a", "k": 1, "v": "new"}


def test_a_key_without_its_partition_column_has_a_row_in_each(tmp_path: Path) -> None:
    made = Catalog(str(tmp_path / "wh")).create_table(
        "db.t",
        "p STRING, k INT, v STRING",
        primary_key=["k"],
        partition_by=["p"],
        options={"bucket": 1, "lakelsm.key-per-partition": True},
    )
    write(made, "a", 1, "x")
    write(made, "b", 1, "y")
    with made.lookup(refresh=0) as lookup, made.lookup(key=["k", "p"], refresh=0) as whole:
        assert lookup.staleness().cache == "full"
        with pytest.raises(InvalidInputError, match="may have several rows: use get_all"):
            lookup.get(1)
        write(made, "a", 1, "new")
        assert sorted(row["v"] for row in lookup.get_all(1)) == ["new", "y"]
        made.delete(where="p = 'b'", engine="local")
        assert [row["v"] for row in lookup.get_all(1)] == ["new"]
        assert (whole.get(1, "a"), whole.get(1, "b")) == ({"p": "a", "k": 1, "v": "new"}, None)
    with pytest.raises(InvalidInputError, match=r"the primary key \(k\) lacks a partition column. Set 'lookup.cache' to"):
        made.lookup(cache="partial")


def test_files_are_in_the_given_directory_or_in_a_temporary_one(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = sorted(tmp_path.iterdir())
    with table.lookup() as lookup:
        lookup.get("a", 1)
        assert len(list(tmp_path.iterdir())) == len(before) + 1
    assert sorted(tmp_path.iterdir()) == before
    for directory in (tmp_path / "kept", str(tmp_path / "kept")):
        with table.lookup(directory=directory) as lookup:
            assert lookup.get("a", 1) == {"p": "a", "k": 1, "v": "x"}
    assert len(list((tmp_path / "kept").iterdir())) == 1


@pytest.mark.parametrize("cache", ["full", "partial"])
def test_threads_see_whole_snapshots_with_ascending_ids_while_rows_are_written(table: Table, cache: str) -> None:
    committed, done = [0], threading.Event()
    faults: list[tuple[int, object, object]] = []

    def write_all(number: int) -> None:
        keys = pa.array([1, 2, 3], pa.int32())
        table.write(pa.table({"p": ["a"] * 3, "k": keys, "v": [f"{number:03}"] * 3}))
        committed[0] = number

    def read(lookup: Lookup) -> None:
        while not done.is_set():
            floor = committed[0]
            try:
                one = lookup.get("a", 1)
                many = set(lookup.get_many(pa.table({"p": ["a"] * 3, "k": [1, 2, 3]}))["v"].to_pylist())
            except (LakelsmError, ArithmeticError, LookupError, TypeError, pa.ArrowException) as error:
                faults.append((floor, error, None))
                return
            if one is None or len(many) != 1 or floor > int(one["v"]) or one["v"] > max(many):
                faults.append((floor, one, many))

    write_all(0)
    with table.lookup(refresh=0, cache=cache) as lookup:
        threads = [threading.Thread(target=read, args=(lookup,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for number in range(1, 6):
                write_all(number)
        finally:
            done.set()
            for thread in threads:
                thread.join(PATIENCE)
    assert faults == []


def test_a_deleted_table_is_reported_and_its_rows_are_found_until_then(table: Table, tmp_path: Path) -> None:
    with table.lookup(refresh="never", cache="full") as lookup:
        Catalog(str(tmp_path / "wh")).drop_table("db.t")
        assert lookup.get("a", 1) == {"p": "a", "k": 1, "v": "x"}
        with pytest.raises(LakelsmError, match=r"db\.t"):
            lookup.refresh()


@pytest.mark.parametrize("cache", ["full", "partial", "memory"])
def test_a_table_that_was_created_again_is_looked_up_with_its_own_options(tmp_path: Path, cache: str) -> None:
    catalog = Catalog(str(tmp_path / "other"))

    def make(**options: str) -> Table:
        every = {"bucket": "1", "write-only": "true", **options}
        return catalog.create_table("db.s", "k INT, n INT", primary_key=["k"], options=every)

    def write(table: Table, *numbers: int) -> None:
        for number in numbers:
            table.write(pa.table({"k": pa.array([1], pa.int32()), "n": pa.array([number], pa.int32())}))

    sums = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    first = make()
    write(first, 1)
    with first.lookup(refresh=0, cache=cache) as lookup:
        assert lookup.get(1) == {"k": 1, "n": 1}
        catalog.drop_table("db.s")
        write(make(**sums), 2, 3)
        assert lookup.get(1) == {"k": 1, "n": 5}
        catalog.alter_table("db.s", SetOption("num-levels", "4"))
        assert lookup.get(1) == {"k": 1, "n": 5}
        catalog.drop_table("db.s")
        write(make(), 6, 7)
        assert lookup.get(1) == {"k": 1, "n": 7}


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"columns": "v"}, "columns: expected a list of column names, got 'v'. Write ['v']"),
        ({"columns": []}, "columns: expected"),

        ({"key": "k"}, "key: expected a list of column names, got 'k'. Write ['k']"),
        ({"key": []}, "key: expected a list of column names (leave it out for the primary key)"),

        ({"where": 5}, "where: expected"),
        ({"where": "nope = 1"}, "nope"),
        ({"refresh": "soon"}, "refresh: expected seconds, a duration such as '10 s', 0 to check"),
        ({"refresh": -1}, "refresh: expected"),
        ({"refresh": True}, "refresh: expected"),
        ({"cache": "rocks"}, "cache: expected 'auto', 'full', 'partial' or 'memory'"),
        ({"options": {"bucket": 2}}, "options: 'bucket' is not an option of lookups"),
        ({"options": {"lakelsm.lookup-service.max-calls": 2}}, "'lakelsm.lookup-service.max-calls' is not an option"),
        ({"options": {"lookup.cache-rows": "many"}}, "option 'lookup.cache-rows': 'many' is not a whole number"),

        ({"options": {"lookup.cache": "full"}, "cache": "full"}, "'lookup.cache' is the same setting as cache"),
        (
            {"options": {"continuous.discovery-interval": "1 s"}, "refresh": 1},
            "'continuous.discovery-interval' is the same setting as refresh",
        ),
        ({"directory": "here"}, "directory: expected the absolute path of a directory"),
        ({"directory": 5}, "directory: expected"),
        ({"directory": "/nowhere", "cache": "memory"}, "directory: a 'memory' cache has no files"),
        ({"cache": "partial", "key": ["v"]}, "a 'partial' cache answers lookups by the whole primary key"),
    ],
)
def test_wrong_arguments_are_refused_with_the_reason(arguments: dict[str, Any], fault: str, table: Table) -> None:
    with pytest.raises(InvalidInputError) as reported:
        table.lookup(**arguments)
    assert fault in str(reported.value)


@pytest.mark.parametrize("cache", ["full", "partial", "auto"])
def test_a_key_of_a_nested_type_is_refused_before_anything_is_read(cache: str, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    made = catalog.create_table("db.t", "k INT, m MAP<STRING, INT>", primary_key=["k"], options={"bucket": 1})
    with pytest.raises(InvalidInputError, match=r"Table db\.t: key column 'm' has type MAP<STRING, INT>. Look rows"):
        made.lookup(key=["m"], cache=cache)


def test_a_condition_that_cannot_be_parsed_is_refused(table: Table) -> None:
    with pytest.raises(UnsupportedFeatureError, match="UUID"):
        table.lookup(where="uuid() = v")


def test_a_lookup_that_cannot_be_opened_leaves_no_directory(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidInputError):
        table.lookup(cache="partial", key=["v"])
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture
def plain(tmp_path: Path) -> Table:
    return Catalog(str(tmp_path)).create_table(
        "db.t", "k INT, v STRING", primary_key=["k"], options={"bucket": 1}
    )


def spec(plain: Table, cache: str = "auto", key: str = "k") -> LookupSpec:
    definition = LookupDefinition(key=(key,), options={"lookup.cache": cache})
    return definition.of_table(plain._store()).spec(None)


@pytest.mark.parametrize(
    ("cache", "key", "service", "expected"),
    [
        ("auto", "k", False, "partial"),
        ("auto", "k", True, "remote"),
        ("auto", "v", False, "full"),
        ("auto", "v", True, "full"),
        ("full", "k", True, "full"),
        ("memory", "k", True, "full"),
        ("partial", "k", True, "partial"),
    ],
)
def test_auto_chooses_as_paimon_does(
    cache: str, key: str, service: bool, expected: str, plain: Table
) -> None:
    if service:
        publish(plain._store(), [ServerAddress("127.0.0.1", 9)])
    assert chosen_cache(spec(plain, cache, key)) == expected


def test_each_cache_has_its_own_directory(plain: Table, tmp_path: Path) -> None:
    private, shared = opened_cache(spec(plain), None), opened_cache(spec(plain), tmp_path / "shared")
    assert (private.kind, type(private)) == ("partial", PartialCache)
    assert shared._directory.path.parent == tmp_path / "shared"
    private.close()
    shared.close()
    assert (private._directory.path.exists(), shared._directory.path.exists()) == (False, True)


def test_a_cache_in_memory_has_its_own_directory(plain: Table, tmp_path: Path) -> None:
    with_memory = opened_cache(spec(plain, "memory"), tmp_path / "shared")
    assert with_memory.kind == "full" and with_memory._directory.path.parent == Path("/dev/shm")
    with_memory.close()
    assert not with_memory._directory.path.exists() and not (tmp_path / "shared").exists()


def test_caches_share_a_directory_only_if_one_answers_both(plain: Table) -> None:
    base = spec(plain)
    others = [
        spec(plain, "full"),
        spec(plain, key="v"),
        replace(base, columns=("v",)),
        replace(base, predicate=Compare("v", "=", "x")),
        replace(base, buckets=frozenset([0])),
        replace(base, buckets=frozenset([0, 1])),
    ]
    assert len({cache_name(each) for each in (base, *others)}) == len(others) + 1
    assert cache_name(spec(plain)) == cache_name(base)
