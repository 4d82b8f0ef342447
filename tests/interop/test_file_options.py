"""Java reads files that lakelsm writes with options on their form."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.interop.samples import rows_of

COLUMNS = "k INT NOT NULL, v STRING"
OPTIONS = {
    "bucket": "4",
    "write-only": "true",
    "target-file-row-num": "2",
    "file.block-size": "1 kb",
    "parquet.enable.dictionary": "false",
}


def test_java_reads_small_files_without_dictionaries(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    ours.create(path, COLUMNS, ["k"], options=OPTIONS)
    ours.write(path, rows_of(COLUMNS, {"k": list(range(20)), "v": ["same"] * 20}))
    footers = list(map(pq.read_metadata, path.rglob("data-*.parquet")))
    assert max(footer.num_rows for footer in footers) == 2 < len(footers)
    assert not any(footer.row_group(0).column(at).has_dictionary_page for footer in footers for at in range(5))
    assert sorted(java.read(path)) == [(k, "same") for k in range(20)]
    assert java.read(path) == ours.read(path)
    java.write(path, rows_of(COLUMNS, {"k": [3], "v": ["newer"]}))
    java.compact(path)
    assert ours.read(path) == java.read(path)
