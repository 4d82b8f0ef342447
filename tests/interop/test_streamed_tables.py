"""Tables that streams wrote, in both ways, read by Java Paimon and pypaimon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelsm import Catalog
from tests.interop.peers import JavaPaimon, Peer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "k INT, seq BIGINT, v STRING"
#: Keys of each batch, with the row kind.
BATCHES = (
    [(key, "+I") for key in range(40)],
    [(key, "+U") for key in range(0, 40, 3)] + [(50, "+I")],
    [(key, "-D") for key in range(0, 40, 4)] + [(50, "+U")],
)
LAYOUTS = {
    "native": {"bucket": "2", "changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
    "data source": {"bucket": "-1", "dynamic-bucket.target-row-num": "15", "changelog-producer": "input"},
}


@pytest.fixture(scope="module", params=LAYOUTS)
def streamed(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that a stream of changes of another table wrote, one batch for each of its commits."""
    folder = tmp_path_factory.mktemp("streamed")
    catalog = Catalog(str(folder / "warehouse"), spark)
    source = catalog.create_table(
        "db.source", COLUMNS, primary_key="k", options={"bucket": "2", "changelog-producer": "input"}
    )
    target = catalog.create_table("db.t", COLUMNS, primary_key="k", options=LAYOUTS[request.param])
    for number, keys in enumerate(BATCHES):
        source.write([{"k": key, "seq": number, "v": f"{kind}{key}", "kind": kind} for key, kind in keys], "kind")
    start = {"read.changelog": "true", "scan.snapshot-id": "1", "read.stream.maxFilesPerTrigger": "2"}
    stream = spark.readStream.format("lakelsm").options(**start).load(f"{folder}/warehouse/db.db/source").writeStream
    stream = stream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    if request.param == "native":
        query = target.write_stream(stream, row_kind="rowkind")
    else:
        query = stream.format("lakelsm").option("row-kind", "rowkind").start(f"{folder}/warehouse/db.db/t")
    query.awaitTermination()
    assert len({each.commit_identifier for each in target._store().snapshots.list()}) == len(BATCHES)
    return folder / "warehouse" / "db.db" / "t"


def expected() -> list[tuple[int, int, str]]:
    rows: dict[int, tuple[int, int, str]] = {}
    for number, keys in enumerate(BATCHES):
        for key, kind in keys:
            rows[key] = (key, number, f"{kind}{key}")
            if kind == "-D":
                del rows[key]
    return sorted(rows.values())


def test_other_engines_read_the_table_of_a_stream(peer: Peer, streamed: Path) -> None:
    assert sorted(peer.read(streamed)) == expected()


def test_java_streams_the_changes_of_a_stream(java: JavaPaimon, streamed: Path) -> None:
    rows: dict[object, tuple[object, ...]] = {}
    for changes in java.stream(streamed, 1):
        for kind, *row in changes:
            if kind in ("+I", "+U"):
                rows[row[0]] = tuple(row)
            elif kind == "-D":
                del rows[row[0]]
    assert sorted(rows.values()) == expected()


def test_java_continues_the_table_of_a_stream(
    java: JavaPaimon, peers: Callable[[str], Peer], streamed: Path, tmp_path: Path
) -> None:
    java.compact(streamed)
    assert sorted(java.read(streamed)) == sorted(peers("pypaimon").read(streamed)) == expected()
