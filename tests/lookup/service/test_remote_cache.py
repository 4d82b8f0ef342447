"""Lookups that servers answer: the rows that a read gives, one retry with fresh addresses, then an error."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError, InvalidInputError, LookupServiceError
from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.bucket_hash import hash_rows
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.lookup.service.protocol import ServerConnection
from lakelsm.lookup.service.remote_cache import RemoteCache, ServerChoice
from lakelsm.lookup.service.service_access import ServerAddress, publish
from lakelsm.predicate.predicate import Compare
from lakelsm.schema_changes import AddColumn
from lakelsm.table import Table
from tests.compact.local_table import LocalTable
from tests.lookup.service.whole_table import service, started

PARTITIONED = "dt STRING NOT NULL, id INT NOT NULL, name STRING, amount DECIMAL(10, 2), tags ARRAY<STRING>"


def spec_of(table: LocalTable, *columns: str, key: Sequence[str] | None = None, **rest: Any) -> LookupSpec:
    schema = table.store.schema
    return LookupSpec(table.store, tuple(key or schema.primary_keys), columns or tuple(schema.field_names), **rest)


def simple(root: Path, rows: int = 100, **options: str) -> LocalTable:
    table = LocalTable(root, **{"bucket": "4", "lakelsm.lookup-service.timeout": "5 min", **options})
    table.write(*((key, f"row {key}") for key in range(rows)))
    return table


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int32())})


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("bucket", ["1", "3", "-1"])
def test_rows_are_those_of_a_read_in_the_order_of_the_keys(tmp_path: Path, servers: int, bucket: str) -> None:
    table = LocalTable(tmp_path / "t", PARTITIONED, ("dt", "id"), ("dt",), bucket=bucket)
    days = [f"2026-01-0{day}" for day in range(1, 5)]
    table.write(*((day, key, f"{day} {key}", None, [str(key)]) for day in days for key in range(0, 60, 2)))
    table.write(*((day, key, None, None, None) for day in days[:2] for key in range(0, 20, 2)))
    expected = {(row["dt"], row["id"]): row for row in Table.for_path(str(table.root)).to_arrow().to_pylist()}
    draw = np.random.default_rng(7)
    searched = [(days[day], int(key)) for day, key in zip(draw.integers(0, 4, 500), draw.integers(0, 60, 500))]
    keys = pa.table({"id": pa.array([key for _, key in searched], pa.int32()), "dt": [day for day, _ in searched]})
    with service(table.store, servers):
        cache = RemoteCache.open(spec_of(table, key=["id", "dt"]))
        found = cache.find(keys)
        cache.close()
    assert found.probes.tolist() == [index for index, key in enumerate(searched) if key in expected]
    assert found.rows.to_pylist() == [expected[key] for key in searched if key in expected]


def test_each_client_has_its_projection_and_another_one_widens_the_cache_of_the_server(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, a INT, b STRING, c DOUBLE")
    table.write((1, 10, "x", 0.5), (2, 20, "y", 1.5))
    with service(table.store):
        caches = [RemoteCache.open(spec_of(table, *names)) for names in (("b",), ("c", "id"), ("b",), ("a", "b", "c"))]
        found = [cache.find(ids(2, 9)).rows for cache in caches]
        assert [rows.column_names for rows in found] == [["b"], ["c", "id"], ["b"], ["a", "b", "c"]]
        assert found[1].to_pylist() == [{"c": 1.5, "id": 2}]
        assert caches[0].find(ids(1)).rows.to_pylist() == [{"b": "x"}]


def test_rows_that_the_filter_of_the_cache_leaves_out_are_not_found(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, a INT, b STRING")
    table.write((1, 10, "x"), (2, 20, "y"), (3, None, "z"))
    with service(table.store):
        cache = RemoteCache.open(spec_of(table, "b", predicate=Compare("a", ">", 15)))
        found = cache.find(ids(3, 2, 1))
        assert found.probes.tolist() == [1]
        assert found.rows.to_pylist() == [{"b": "y"}]
        assert cache.find_key((1,)) == []


def test_a_single_key_gives_python_values(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    with service(table.store, 2):
        cache = RemoteCache.open(spec_of(table))
        assert cache.find_key((42,)) == [(42, "row 42")]
        assert cache.find_key((1000,)) == []
        assert RemoteCache.open(spec_of(table, "v")).find_key((7,)) == [("row 7",)]


def test_more_keys_than_one_request_may_have_and_no_keys(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    keys = pa.table({"id": pa.array(np.arange(150_000) % 200, pa.int32())})
    with service(table.store, 2):
        cache = RemoteCache.open(spec_of(table))
        found = cache.find(keys)
        assert found.probes.tolist() == [index for index in range(150_000) if index % 200 < 100]
        assert found.rows.column("id").to_pylist() == [index % 200 for index in found.probes.tolist()]
        nothing = cache.find(keys.slice(0, 0))
        assert len(nothing.probes) == nothing.rows.num_rows == 0
        assert nothing.rows.schema.names == ["id", "v"]


def test_a_refresh_moves_every_server_to_the_newest_snapshot(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    with service(table.store, 2):
        cache = RemoteCache.open(spec_of(table))
        assert cache.snapshot == table.latest
        table.write((1, "new"))
        assert cache.find_key((1,)) == [(1, "row 1")]
        done = cache.refresh()
        assert (done.snapshot, done.changed) == (table.latest, None)
        assert cache.find_key((1,)) == [(1, "new")]
        again = cache.refresh()
        assert again.changed is not None
        assert len(again.changed) == 0
        assert cache.snapshot == table.latest


def test_servers_refresh_automatically(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    with service(table.store, refresh=0.05):
        cache = RemoteCache.open(spec_of(table))
        table.write((1, "new"))
        for _ in range(6000):  # Five minutes.
            if cache.find_key((1,)) == [(1, "new")]:
                break
            threading.Event().wait(0.05)
        else:
            raise AssertionError("the server stays at its snapshot")


def test_the_snapshot_is_the_oldest_that_servers_answer_from(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    old = table.latest
    made = started(table.store, 2)
    cache = RemoteCache.open(spec_of(table))
    table.write((1, "new"))
    made[1]._served.refresh()
    cache.find(ids(*range(100)))
    assert cache.snapshot == old
    made[0]._served.refresh()
    cache.find(ids(*range(100)))
    assert cache.snapshot == table.latest
    for server in made:
        server.stop()


def test_an_empty_table_has_no_snapshot_and_no_rows(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    with service(table.store):
        cache = RemoteCache.open(spec_of(table))
        assert cache.snapshot is None
        assert cache.find_key((1,)) == []


def test_column_names_have_the_meaning_of_the_clients_schema(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    old = spec_of(table, "id")
    with service(table.store):
        table.alter(AddColumn("w", "INT"))
        table.write((1, "one", 11))
        new = RemoteCache.open(spec_of(table, "id", "w"))
        assert new.find_key((1,)) == [(1, 11)]
        assert RemoteCache.open(old).find_key((1,)) == [(1,)]


def test_a_server_that_restarted_at_another_port_is_found(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    (first,) = started(table.store)
    cache = RemoteCache.open(spec_of(table))
    assert cache.find_key((5,)) == [(5, "row 5")]
    first.stop()
    with service(table.store, 3) as made:
        assert first.address not in [server.address for server in made]
        assert cache.find_key((5,)) == [(5, "row 5")]
        assert cache.find(ids(*range(100))).rows.num_rows == 100


def test_a_server_that_does_not_answer_is_named_after_one_retry(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    made = started(table.store, 2)
    cache = RemoteCache.open(spec_of(table))
    made[1].stop()
    alive = [key for key in range(100) if _number(cache, key) == 0]
    dead = next(key for key in range(100) if _number(cache, key) == 1)
    assert cache.find(ids(*alive)).probes.tolist() == list(range(len(alive)))
    with pytest.raises(LookupServiceError) as failure:
        cache.find(ids(dead))
    text = str(failure.value)
    assert str(table.root) in text
    assert "bucket " in text
    assert str(made[1].address) in text
    made[0].stop()


def test_if_many_servers_do_not_answer_only_some_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = simple(tmp_path / "t")
    publish(table.store, [ServerAddress("127.0.0.1", 1)] * 10_000)
    calls: list[int] = []
    act = ServerConnection.act
    monkeypatch.setattr(ServerConnection, "act", lambda self, action: (calls.append(1), act(self, action))[1])
    with pytest.raises(LookupServiceError, match=r"127\.0\.0\.1:1"):
        RemoteCache.open(spec_of(table))
    assert len(calls) < 5000


def _number(cache: RemoteCache, key: int) -> int:
    choice = cache._servers.choice
    return int(choice.servers_of(ids(key), choice.buckets_of(ids(key)))[0])


def test_the_error_without_a_service_says_how_to_start_one(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    with pytest.raises(LookupServiceError, match=r"lakelsm query-service"):
        RemoteCache.open(spec_of(table))


def test_a_damaged_file_of_addresses_is_named(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    with service(table.store) as made:
        cache = RemoteCache.open(spec_of(table))
        Path(table.store.paths.lookup_service).write_text('["no address"]')
        assert cache.find_key((1,)) == [(1, "row 1")]
        made[0].stop()
        with pytest.raises(CorruptTableError, match="service-primary-key-lookup-flight"):
            cache.find_key((1,))


def test_a_server_of_another_table_at_an_outdated_address_gives_no_rows(tmp_path: Path) -> None:
    table, other = simple(tmp_path / "t"), simple(tmp_path / "other")
    with service(other.store) as made:
        publish(table.store, [made[0].address])
        with pytest.raises(LookupServiceError, match=r"server is for table .*other"):
            RemoteCache.open(spec_of(table))


def test_a_server_of_another_number_gives_no_rows(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    with service(table.store, 2) as made:
        publish(table.store, [made[1].address, made[0].address])
        with pytest.raises(LookupServiceError, match="the request is for server 0 of 2"):
            RemoteCache.open(spec_of(table))


def test_a_server_of_another_kind_is_reported(tmp_path: Path) -> None:
    import socket

    table = simple(tmp_path / "t", **{"lakelsm.lookup-service.timeout": "500 ms"})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        publish(table.store, [ServerAddress(*silent.getsockname())])
        with pytest.raises(LookupServiceError, match=r"its query service at 127\.0\.0\.1:"):
            RemoteCache.open(spec_of(table))


def test_other_keys_than_the_primary_key_need_a_full_cache(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    with service(table.store), pytest.raises(InvalidInputError, match=r"Set 'lookup.cache' to 'full'"):
        RemoteCache.open(spec_of(table, key=["v"]))


def test_a_closed_cache_raises(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    with service(table.store, 2):
        cache = RemoteCache.open(spec_of(table))
        cache.close()
        for call in (lambda: cache.find(ids(1, 2, 3)), lambda: cache.find_key((1,)), cache.refresh):
            with pytest.raises(InvalidInputError, match="the lookup is closed"):
                call()


def test_many_threads_share_a_cache_while_servers_are_replaced(tmp_path: Path) -> None:
    table = simple(tmp_path / "t", 1000)
    made = started(table.store, 2)
    cache = RemoteCache.open(spec_of(table))
    expected = [f"row {key}" for key in range(1000)]

    def work(_: int) -> bool:
        return cache.find(ids(*range(1000))).rows.column("v").to_pylist() == expected

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(work, number) for number in range(40)]
        newer = started(table.store, 3)
        for server in made:
            server.stop()
        assert all(future.result() for future in waiting)
    for server in newer:
        server.stop()


def test_a_single_key_may_have_nanoseconds(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "at TIMESTAMP(9) NOT NULL, name STRING", ("at",))
    table.write((datetime(2026, 1, 2), "a"))
    (stored,) = LookupKeys.of(table.store.schema, ["at"]).single()((datetime(2026, 1, 2),), {}) or ()
    with service(table.store):
        assert RemoteCache.open(spec_of(table, "name")).find_key((stored,)) == [("a",)]


def servers_of(table: LocalTable, servers: int, keys: pa.Table) -> list[int]:
    choice = ServerChoice(table.store, servers)
    return choice.servers_of(keys, choice.buckets_of(keys)).tolist()


def test_buckets_of_a_table_without_partitions_are_assigned_to_the_servers_in_turn(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", bucket="5")
    keys = pa.table({"id": pa.array(range(200), pa.int32())})
    buckets = ServerChoice(table.store, 3).buckets_of(keys)
    assert buckets is not None
    # A BinaryRow without fields is eight zero bytes.
    start = abs(int(hash_rows(pa.array([bytes(8)], pa.binary()))[0])) % 3
    assert servers_of(table, 3, keys) == ((start + buckets) % 3).tolist()
    assert set(servers_of(table, 3, keys)) == {0, 1, 2}


def test_partitions_of_one_bucket_each_are_spread(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "dt STRING NOT NULL, id INT NOT NULL, v STRING", ("dt", "id"), ("dt",))
    days = [f"2026-01-{day:02}" for day in range(1, 29)]
    keys = pa.table({"id": pa.array([7] * 28, pa.int32()), "dt": days})
    rows = [encode_row([day], table.store.partition_types)[4:] for day in days]
    starts = np.abs(hash_rows(pa.array(rows, pa.binary())).astype(np.int64)) % 4
    assert servers_of(table, 4, keys) == starts.tolist()
    assert len(set(starts.tolist())) > 1


def test_with_dynamic_buckets_each_key_has_one_server(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", bucket="-1")
    keys = pa.table({"id": pa.array(range(100), pa.int32())})
    assert set(servers_of(table, 2, keys)) == {0, 1}
    assert servers_of(table, 2, keys.slice(50)) == servers_of(table, 2, keys)[50:]
    assert servers_of(table, 1, keys) == [0] * 100
