"""Servers of other vendors, if one runs: LAKELSM_MINIO and LAKELSM_AZURITE are JSON with the ``uri`` of an existing
bucket (s3://… or abfss://…) and its `storage_options`, such as
``{"uri": "s3://tests", "s3.endpoint": "http://127.0.0.1:9000", "s3.access-key": "…", "s3.secret-key": "…"}``.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.storage import open_storage

SERVERS = ["LAKELSM_MINIO", "LAKELSM_AZURITE"]


@pytest.fixture(params=SERVERS)
def running(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """Return a new location on a server and the options that open it."""
    given = os.environ.get(request.param)
    if given is None:
        pytest.skip(f"{request.param} names no running server")
    options = json.loads(given)
    return f"{options.pop('uri')}/{uuid4()}", options


def test_of_racing_creators_exactly_one_wins(running: tuple[str, dict[str, str]]) -> None:
    file_io, root = open_storage(*running)
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            path = f"{root}/snapshot-{number}"
            won = list(pool.map(file_io.create_if_absent, [path] * 8, [str(who).encode() for who in range(8)]))
            assert sum(won) == 1
            assert file_io.read(path) == str(won.index(True)).encode()
    file_io.delete_dir(root)
    assert file_io.list(root) == []


def test_a_table_is_written_read_compacted_and_dropped(running: tuple[str, dict[str, str]]) -> None:
    catalog = Catalog(running[0], storage_options=running[1])
    schema = pa.schema([("dt", pa.string()), ("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("d.t", schema, primary_key=["dt", "id"], partition_by=["dt"], options={"bucket": "1"})
    for number in range(3):
        table.write(pa.table({"dt": ["a b:c", "é%"], "id": [1, 2], "v": [f"x{number}"] * 2}))
    large = pa.table({"dt": ["big"] * 300_000, "id": list(range(300_000)), "v": [uuid4().hex for _ in range(300_000)]})
    table.write(large)
    table.compact(full=True)
    assert table.to_arrow(where="dt <> 'big'")["v"].to_pylist() == ["x2", "x2"]
    assert table.to_arrow(where="dt = 'big'").sort_by("id")["v"].to_pylist() == large["v"].to_pylist()
    assert table.maintenance.check().findings == ()
    catalog.drop_table("d.t")
    assert catalog.list_databases() == []
