"""Files that Java writes in ORC, Avro and text formats are refused by name until Java rewrites them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import UnsupportedFeatureError
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.interop.samples import rows_of

COLUMNS = "k INT NOT NULL, v STRING"
#: The options of Java's writes, and the endings of the names of their files.
WRITTEN = {
    "orc": ({"file.format": "orc"}, {".orc"}),
    "avro": ({"file.format": "avro"}, {".avro"}),
    "per level": ({"file.format.per.level": "0:avro,5:parquet"}, {".avro"}),
    "with compression": ({"file.format": "orc", "file.suffix.include.compression": "true"}, {".zst", ".orc"}),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_data_files_of_java_in_another_format_are_refused_by_name_until_they_are_rewritten(
    ours: LakelsmTables, java: JavaPaimon, path: Path, case: str
) -> None:
    options, endings = WRITTEN[case]
    ours.create(path, COLUMNS, ["k"], options={"bucket": "1", "write-only": "true"})
    ours.write(path, rows_of(COLUMNS, {"k": [1], "v": ["a"]}))
    java.write_all(path, [(rows_of(COLUMNS, {"k": [2], "v": ["b"]}), None)], options)
    assert {ending for file in path.rglob("data-*") for ending in file.suffixes} == {".parquet", *endings}
    table = ours.table(path)
    found = r"has the format (ORC|AVRO); .*file\.format' = 'parquet'"
    for read in (table.to_arrow, lambda: table.compact(full=True, engine="local"), lambda: table.count("v = 'b'")):
        with pytest.raises(UnsupportedFeatureError, match=found):
            read()
    assert table.maintenance.check(data="full", engine="local").ok
    java.write_all(path, [(rows_of(COLUMNS, {"k": [3], "v": ["c"]}), None)], {"write-only": "false"}, full=True)
    assert ours.read(path) == java.read(path)
    assert len(ours.read(path)) == 3


def test_a_java_table_in_orc_opens_and_only_reads_of_its_rows_are_refused(
    ours: LakelsmTables, java: JavaPaimon, path: Path
) -> None:
    java.create(path, COLUMNS, ["k"], options={"bucket": "1", "file.format": "orc", "file.compression": "zlib"})
    assert ours.read(path) == []
    java.write(path, rows_of(COLUMNS, {"k": [1], "v": ["a"]}))
    table = ours.table(path)
    assert table.inspect.system("files").to_arrow()["file_format"].to_pylist() == ["orc"]
    with pytest.raises(UnsupportedFeatureError, match="format ORC"):
        table.to_arrow()
    refused = "option 'file.compression': lakelsm does not write the compression 'zlib'"
    with pytest.raises(UnsupportedFeatureError, match=refused):
        table.write(rows_of(COLUMNS, {"k": [1], "v": ["a"]}))


def test_java_changelog_files_in_another_format_are_refused_only_by_their_readers(
    ours: LakelsmTables, java: JavaPaimon, path: Path
) -> None:
    keys = {"bucket": "1", "write-only": "true", "changelog-producer": "input"}
    ours.create(path, COLUMNS, ["k"], options=keys)
    java.write_all(path, [(rows_of(COLUMNS, {"k": [2], "v": ["b"]}), None)], {"changelog-file.format": "avro"})
    assert len(list(path.rglob("changelog-*.avro"))) == 1
    table = ours.table(path)
    assert ours.read(path) == java.read(path) == [(2, "b")]
    with pytest.raises(UnsupportedFeatureError, match=r"changelog-.* has the format AVRO"):
        table.changelog_reader(0, 1).read_all()
