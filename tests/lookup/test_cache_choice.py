"""Which cache answers a lookup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_choice import cache_name, chosen_cache, opened_cache
from lakelsm.lookup.lookup_definition import LookupDefinition
from lakelsm.lookup.partial.partial_cache import PartialCache
from lakelsm.lookup.service.service_addresses import ServerAddress, publish
from lakelsm.predicate.predicate import Compare


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Catalog(str(tmp_path)).create_table(
        "db.t", "k INT, v STRING", primary_key=["k"], options={"bucket": 1}
    )


def spec(table: Table, cache: str = "auto", key: str = "k") -> LookupSpec:
    definition = LookupDefinition(key=(key,), options={"lookup.cache": cache})
    return definition.of_table(table._store()).spec(None)


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
def test_auto_is_paimons_choice_and_others_are_what_they_say(
    cache: str, key: str, service: bool, expected: str, table: Table
) -> None:
    if service:
        publish(table._store(), [ServerAddress("127.0.0.1", 9)])
    assert chosen_cache(spec(table, cache, key)) == expected


@pytest.mark.parametrize("kind", ["arrow", "sort", "hash"])
@pytest.mark.parametrize("columns", [["v"], ["k"], ["k", "v"]])
def test_every_kind_of_file_answers_as_a_read_does(kind: str, columns: list[str], table: Table) -> None:
    table.write(pa.table({"k": pa.array(range(100), pa.int32()), "v": [f"value {at}" for at in range(100)]}))
    table.write(pa.table({"k": pa.array(range(50, 60), pa.int32()), "v": ["new"] * 10}))
    options = {"lookup.cache": "partial", "lookup.local-file-type": kind, "cache-page-size": "256 b"}
    with table.lookup(columns=columns, options=options) as lookup:
        expected = {row["k"]: {name: row[name] for name in columns} for row in table.to_arrow().to_pylist()}
        for key in (0, 49, 55, 99, 100):
            assert lookup.get(key) == expected.get(key)
        many = lookup.get_many(pa.table({"k": pa.array([7, 200, 55, 7], pa.int32())}))
        if "v" in columns:
            assert many["v"].to_pylist() == ["value 7", None, "new", "value 7"]


def test_a_cache_has_a_directory_of_its_own(table: Table, tmp_path: Path) -> None:
    private, shared = opened_cache(spec(table), None), opened_cache(spec(table), tmp_path / "shared")
    assert (private.kind, type(private)) == ("partial", PartialCache)
    assert shared._directory.path.parent == tmp_path / "shared"
    private.close()
    shared.close()
    assert (private._directory.path.exists(), shared._directory.path.exists()) == (False, True)


def test_a_cache_in_memory_has_its_own_directory_there(table: Table, tmp_path: Path) -> None:
    with_memory = opened_cache(spec(table, "memory"), tmp_path / "shared")
    assert with_memory.kind == "full" and with_memory._directory.path.parent == Path("/dev/shm")
    with_memory.close()
    assert not with_memory._directory.path.exists() and not (tmp_path / "shared").exists()


def test_two_caches_share_a_directory_only_where_one_answers_both(table: Table) -> None:
    asked = spec(table)
    others = [
        spec(table, "full"),
        spec(table, key="v"),
        replace(asked, columns=("v",)),
        replace(asked, predicate=Compare("v", "=", "x")),
        replace(asked, buckets=frozenset([0])),
        replace(asked, buckets=frozenset([0, 1])),
    ]
    assert len({cache_name(each) for each in (asked, *others)}) == len(others) + 1
    assert cache_name(spec(table)) == cache_name(asked)
