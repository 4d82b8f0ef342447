"""The server of a key: as Paimon's clients choose it, by partition and bucket."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.bucket_hash import hash_rows
from lakelsm.lookup.service.server_choice import ServerChoice
from tests.compact.local_table import LocalTable


def servers_of(table: LocalTable, servers: int, keys: pa.Table) -> list[int]:
    choice = ServerChoice.of(table.store, servers)
    return choice.servers_of(keys, choice.buckets_of(keys)).tolist()


def test_buckets_of_a_table_without_partitions_go_round_the_servers(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", bucket="5")
    keys = pa.table({"id": pa.array(range(200), pa.int32())})
    buckets = ServerChoice.of(table.store, 3).buckets_of(keys)
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


def test_each_key_has_one_server_where_buckets_are_dynamic(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", bucket="-1")
    keys = pa.table({"id": pa.array(range(100), pa.int32())})
    assert set(servers_of(table, 2, keys)) == {0, 1}
    assert servers_of(table, 2, keys.slice(50)) == servers_of(table, 2, keys)[50:]
    assert servers_of(table, 1, keys) == [0] * 100
