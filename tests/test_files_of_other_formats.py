"""Data and changelog files in other formats than Parquet: calls that need their rows refuse them by name, others work."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.schema_changes import RemoveOption, SetOption
from tests.hostile.hostile_table import forget_checksums
from tests.table_files import live_files, root_of

_OPTIONS = {"bucket": "1", "write-only": "true", "manifest.compression": "none", "changelog-producer": "input"}
#: Replacements of '.parquet' in names, of the same length, so that manifests keep their sizes.
_ENDINGS = {"orc": "-abc.orc", "avro": "-ab.avro", "zst.orc": ".zst.orc", "json": "-ab.json", "csv.zst": ".csv.zst"}


def _columns(first: int, count: int) -> pa.Table:
    return pa.table({"dt": ["a"] * count, "k": pa.array(range(first, first + count), pa.int32()), "v": ["x"] * count})


def _table(folder: Path, **options: str) -> Table:
    """Create a table with two writes, each of a data file and a changelog file."""
    catalog = Catalog(str(folder))
    columns = "dt STRING, k INT, v STRING"
    table = catalog.create_table(
        "db.t", columns, primary_key=["dt", "k"], partition_by=["dt"], options={**_OPTIONS, **options}
    )
    for first in (0, 2):
        table.write(_columns(first, 3))
    return table


def _rename(table: Table, ending: str, only: str = "") -> None:
    """Give files whose name begins with ``only`` another extension, as if another engine had written them."""
    root = root_of(table)
    forget_checksums(root)
    old, new = b".parquet", ending.encode()
    assert len(old) == len(new)
    for path in root.glob("dt=a/bucket-0/*.parquet"):
        if path.name.startswith(only):
            renamed = path.with_name(path.name.replace(".parquet", ending))
            for manifest in root.glob("manifest/manifest-*"):
                manifest.write_bytes(manifest.read_bytes().replace(path.name.encode(), renamed.name.encode()))
            path.rename(renamed)


def _set_stored(table: Table, **options: str) -> Table:
    """Open the table again with options that another engine set."""
    path = max((root_of(table) / "schema").iterdir())
    stored = json.loads(path.read_text())
    stored["options"].update({key.replace("__", "."): text for key, text in options.items()})
    path.write_text(json.dumps(stored))
    return Table.for_path(str(root_of(table)))


_READS: dict[str, Callable[[Table], object]] = {
    "to_arrow": lambda table: table.to_arrow(),
    "ordered": lambda table: table.to_arrow(ordered=True),
    "to_pandas": lambda table: table.to_pandas(),
    "point read": lambda table: table.to_arrow("k = 1"),
    "count of rows": lambda table: table.count("v = 'x'"),
    "full lookup": lambda table: table.lookup(cache="full").get("a", 1),
    "partial lookup": lambda table: table.lookup(cache="partial").get("a", 1),
    "in memory": lambda table: table.lookup(cache="memory").get("a", 1),
    "delete": lambda table: table.delete("v = 'x'", engine="local"),
    "compact": lambda table: table.compact(full=True),
    "dry run": lambda table: table.compact(full=True, dry_run=True),
    "in steps": lambda table: table.compact(full=True, commit_every=1),
    "analyze": lambda table: table.maintenance.analyze(engine="local"),
    "diff": lambda table: table.changelog_reader(0, mode="diff").read_all(),
    "delta": lambda table: table.changelog_reader(0, mode="delta").read_all(),
    "ro": lambda table: table.inspect.system("audit_log").to_arrow(),
}


@pytest.mark.parametrize("ending", _ENDINGS)
def test_calls_that_need_rows_of_another_format_are_refused_and_change_nothing(tmp_path: Path, ending: str) -> None:
    table = _table(tmp_path)
    _rename(table, _ENDINGS[ending], "data-")
    wanted = ending.replace("zst.orc", "orc").replace("csv.zst", "csv").upper()
    before = {path: path.stat().st_mtime_ns for path in root_of(table).rglob("*")}
    for name, read in _READS.items():
        with pytest.raises(UnsupportedFeatureError, match=rf"data-.*has the format {wanted}; .*file\.format"):
            read(table)
            pytest.fail(name)
    assert {path: path.stat().st_mtime_ns for path in root_of(table).rglob("*")} == before


def test_only_readers_of_changelogs_refuse_changelog_files_of_another_format(tmp_path: Path) -> None:
    table = _table(tmp_path)
    _rename(table, _ENDINGS["avro"], "changelog-")
    with pytest.raises(UnsupportedFeatureError, match=r"changelog-.*has the format AVRO"):
        table.changelog_reader(0, 2).read_all()
    assert table.to_arrow().num_rows == 5
    assert table.changelog_reader(0, 2, mode="delta").read_all().num_rows == 5
    result = table.maintenance.check(data="full", engine="local")
    assert result.ok and {finding.rule for finding in result.findings} == {"data-file-format"}, result.as_text()


def test_a_check_does_not_call_other_formats_damage(tmp_path: Path) -> None:
    table = _table(tmp_path)
    _rename(table, _ENDINGS["orc"])
    assert not table.maintenance.check(data="none", engine="local").findings
    for data in ("footers", "sample", "full"):
        result = table.maintenance.check(data=data, engine="local")
        assert result.ok and {finding.rule for finding in result.findings} == {"data-file-format"}, result.as_text()
    (root_of(table) / "dt=a/bucket-0" / next(iter(live_files(table)))).unlink()
    assert "data-file-missing" in {finding.rule for finding in table.maintenance.check(engine="local").findings}


def test_calls_that_need_no_rows_work_on_files_of_other_formats(tmp_path: Path) -> None:
    table = _table(tmp_path)
    _rename(table, _ENDINGS["orc"])
    assert table.count("dt = 'b'").rows == 0
    assert table.inspect.system("files").to_arrow()["file_format"].to_pylist() == ["orc", "orc"]
    for name in ("snapshots", "manifests", "partitions", "buckets", "schemas", "options"):
        table.inspect.system(name).to_arrow()
    assert table.inspect.partitions().to_arrow()["rows"].to_pylist() == [6]
    assert table.inspect.status().level0_files == 2
    table.tags.create("first", snapshot=1)
    table.branches.create("b", tag="first")
    table.write(_columns(9, 1))
    assert table.rollback(2).snapshot_id == 2
    table.branches.delete("b")
    assert table.maintenance.drop_partitions("dt = 'a'").snapshot_id == 3
    assert table.maintenance.expire_snapshots(1, "0 s").snapshots == 2
    left = {path.suffix for path in (root_of(table) / "dt=a/bucket-0").iterdir()}
    assert left == {".orc"}  # The tag keeps them.
    table.tags.delete("first")
    (root_of(table) / "dt=a/bucket-0").mkdir(exist_ok=True)
    stray = root_of(table) / "dt=a/bucket-0" / "data-0123abcd-0123-0123-0123-0123456789ab-0.orc"
    stray.write_bytes(b"ORC")
    os.utime(stray, (0, 0))
    assert table.maintenance.remove_orphans(engine="local").files == 1
    assert not stray.exists() and table.to_arrow().num_rows == 0


def test_a_write_beside_files_of_another_format_is_committed_and_its_rows_are_kept(tmp_path: Path) -> None:
    table = _table(tmp_path)
    _rename(table, _ENDINGS["orc"], "data-")
    assert table.write(_columns(7, 2)).snapshot_id == 3
    assert table.count("dt = 'b'").rows == 0
    with pytest.raises(UnsupportedFeatureError, match="format ORC"):
        table.to_arrow()
    assert table.changelog_reader(2, 3).read_all().num_rows == 2


def test_spark_refuses_files_of_another_format_by_name(tmp_path: Path, spark: Any) -> None:
    table = Table.for_path(str(root_of(_table(tmp_path))), spark)
    _rename(table, _ENDINGS["orc"])
    for read in (
        lambda: table.read().collect(),
        lambda: table.changelog(0).collect(),
        lambda: table.count("v = 'x'", engine="spark"),
        lambda: table.update({"v": "'y'"}, "k = 1"),
        lambda: table.delete("v = 'x'"),
        lambda: table.compact(full=True, engine="spark"),
        lambda: table.inspect.system("audit_log").to_spark().collect(),
    ):
        with pytest.raises(UnsupportedFeatureError, match="format ORC"):
            read()
    assert table.maintenance.check(data="full", engine="spark").ok


#: Options that only writes need, with texts that lakelsm cannot write or no engine can read, and the error of a write.
_UNWRITABLE: tuple[tuple[str, str, type[LakelsmError]], ...] = (
    *(("file.compression", codec, UnsupportedFeatureError) for codec in ("lz4_raw", "zlib", "lzo", "deflate", "null")),
    ("file.compression", "LZ4_RAW", UnsupportedFeatureError),
    ("file.compression", "zsdt", InvalidInputError),
    ("changelog-file.compression", "bzip2", UnsupportedFeatureError),
    ("manifest.compression", "zlib", UnsupportedFeatureError),
    ("file.compression.per.level", "0:lz4,5:zlib", UnsupportedFeatureError),
    ("file.format", "orc", UnsupportedFeatureError),
    ("file.format", "avro", UnsupportedFeatureError),
    ("file.format", "paimon-x", InvalidInputError),
    ("file.format.per.level", "0:avro", UnsupportedFeatureError),
    ("changelog-file.format", "avro", UnsupportedFeatureError),
    ("metadata.iceberg.storage", "table-location", UnsupportedFeatureError),
    ("file.compression.zstd-level", "-3", InvalidInputError),
    ("file.block-size", "lots", InvalidInputError),
    ("num-sorted-run.stop-trigger", "0", InvalidInputError),
    ("target-file-size", "0", InvalidInputError),
    ("metadata.stats-mode", "truncate(0)", InvalidInputError),
    ("fields.v.stats-mode", "some", InvalidInputError),
    ("file-index.bloom-filter.columns", "none", InvalidInputError),
    ("file-index.bloom-filter.v.fpp", "2", InvalidInputError),
    ("snapshot.num-retained.min", "0", InvalidInputError),
    ("snapshot.num-retained.max", "3", InvalidInputError),
    ("commit.max-retries", "many", InvalidInputError),
    ("tag.automatic-creation", "sometimes", InvalidInputError),
    ("partition.expiration-time", "soon", InvalidInputError),
    ("dynamic-partition-overwrite", "maybe", InvalidInputError),
)


@pytest.mark.parametrize(("key", "text", "error"), _UNWRITABLE)
def test_an_option_that_only_writes_need_does_not_prevent_reads(
    tmp_path: Path, key: str, text: str, error: type[LakelsmError]
) -> None:
    table = _set_stored(_table(tmp_path), **{key: text})
    assert table.to_arrow().num_rows == table.count().rows == 5
    assert table.to_arrow("v = 'x' AND k = 1").num_rows == 1
    assert table.changelog_reader(0, 2).read_all().num_rows == 6
    assert table.inspect.system("files").to_arrow().num_rows == 2 and table.tags.list() == []
    with table.lookup() as lookup:
        assert lookup.get("a", 1)
    assert table.maintenance.check(engine="local").ok
    before = sorted(root_of(table).rglob("*"))
    for write in (
        lambda: table.write(_columns(0, 1)),
        lambda: table.overwrite(_columns(0, 1)),
        lambda: table.delete("k = 1", engine="local"),
        lambda: table.compact(full=True, engine="local"),
        lambda: table.maintenance.drop_partitions("dt = 'a'"),
        lambda: table.maintenance.analyze(engine="local"),
    ):
        with pytest.raises(error, match=f"Table .*{key}"):
            write()
    assert sorted(root_of(table).rglob("*")) == before
    upkeep = (
        lambda: table.maintenance.expire_snapshots(),
        lambda: table.tags.create("x"),
        lambda: table.inspect.status(),
    )
    for call in upkeep:  # The call writes no rows, but may need the value.
        if error is InvalidInputError and key.rpartition(".")[2] != "compression":
            with pytest.raises(error, match=f"Table .*{key}"):
                call()
        else:
            call()
    Catalog(str(tmp_path)).alter_table("db.t", RemoveOption(key))
    assert table.write(_columns(0, 1)).snapshot_id == 3


@pytest.mark.parametrize(("key", "text", "error"), _UNWRITABLE)
def test_an_option_that_cannot_be_written_is_refused_at_creation_and_for_a_call(
    tmp_path: Path, key: str, text: str, error: type[LakelsmError]
) -> None:
    if key == "snapshot.num-retained.max":
        return  # 3 is less than the default minimum: the values are wrong only together.
    with pytest.raises(error, match=key.rpartition(".")[2]):
        _table(tmp_path / "new", **{key: text})
    table = _table(tmp_path)
    with pytest.raises(LakelsmError, match=key.rpartition(".")[2]):
        table.write(_columns(0, 1), options={key: text})
    with pytest.raises(error, match=key.rpartition(".")[2]):
        Catalog(str(tmp_path)).alter_table("db.t", SetOption(key, text))
    assert table.write(_columns(0, 1), options={"file.compression": "gzip"}).snapshot_id == 3
