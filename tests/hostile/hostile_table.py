"""A small table that is tampered with, and a directory outside of it that no operation may touch. No JVM."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm.commit.committer import Committer
from lakelsm.errors import LakelsmError
from lakelsm.format.index.index_manifest import decode_index_manifest, encode_index_manifest
from lakelsm.format.manifest import decode_manifest_list, encode_manifest_list
from lakelsm.format.snapshot import CHECKSUMS_KEY, Tag
from lakelsm.plan.changelog_plan import ChangelogMode, plan_changelog
from lakelsm.plan.count_plan import metadata_count
from lakelsm.plan.read_plan import plan_read
from lakelsm.plan.table_status import table_status
from lakelsm.snapshots.manifest_scan import read_index_entries
from lakelsm.types import to_arrow
from tests.compact.local_table import LocalTable, Row
from tests.read.file_engine import FileTable
from tests.time_limit import time_limit

#: Maximum seconds of an operation on a table of a few rows, also on a busy machine.
SECONDS = 300

#: The rows of the table: partition, key, value, list.
ROWS: list[Row] = [
    *(("a", key, f"again {key}", [key]) for key in range(4)),
    *(("a", key, f"v{key}", [key, key]) for key in range(4, 12)),
    *(("b", key, f"v{key}", [key, key]) for key in range(6)),
]
#: The row that each write of `judge` adds.
NEW_ROW: Row = ("a", 100, "new", None)


class HostileTable:
    """A table under ``root`` with every kind of file that a table has, and decoys in ``outside``.

    Three writes, a compaction, a deletion, a tag; dynamic buckets, so HASH indexes; changelog files.
    """

    def __init__(self, root: Path, outside: Path) -> None:
        self.root = root
        self.outside = outside
        self._untouched = self._traces()

    def files(self, pattern: str) -> list[Path]:
        """Return the files of the table that match a pattern, oldest first."""
        return sorted(self.root.glob(pattern), key=lambda path: (path.lstat().st_mtime_ns, path.name))

    @property
    def kinds(self) -> dict[str, Path]:
        """One file of each kind that the newest state needs, by a name for tests."""
        latest = LocalTable(self.root).latest
        manifest = self.root / "manifest"
        return {
            "schema": self.root / "schema" / "schema-0",
            "snapshot": self.root / "snapshot" / f"snapshot-{latest.id}",
            "latest hint": self.root / "snapshot" / "LATEST",
            "tag": self.root / "tag" / "tag-kept",
            "base list": manifest / latest.base_manifest_list,
            "delta list": manifest / latest.delta_manifest_list,
            "index manifest": manifest / str(latest.index_manifest),
            "manifest": next(path for path in self.files("manifest/manifest-*") if "list" not in path.name),
            "data file": LocalTable(self.root).path_of(LocalTable(self.root).live()[0]),
            "hash index": self.root / "index" / read_index_entries_of(self.root)[0],
        }

    def judge(self, *operations: str, keeps_rows: bool = False) -> dict[str, LakelsmError | None]:
        """Run operations (all of OPERATIONS by default): each must end in time, with a typed error or none.

        With ``keeps_rows`` a successful read must return the right rows. No file outside may be touched.
        Return the error of each operation.
        """
        outcomes: dict[str, LakelsmError | None] = {}
        for name in operations or OPERATIONS:
            try:
                late = AssertionError(f"{name} of {self.root} took more than {SECONDS} seconds")
                with time_limit(SECONDS, late):
                    found = OPERATIONS[name](self.root)
            except LakelsmError as error:
                outcomes[name] = error
                continue
            finally:
                assert self._traces() == self._untouched, f"{name} touched files outside of the table"
            outcomes[name] = None
            if found is not None and keeps_rows:
                assert sorted(row for row in found if row != NEW_ROW) == sorted(ROWS)
        return outcomes

    def refused(self, *operations: str) -> list[LakelsmError]:
        """Do as `judge`; every operation must be refused. Return the errors."""
        outcomes = self.judge(*operations)
        assert None not in outcomes.values(), [name for name, error in outcomes.items() if error is None]
        return [error for error in outcomes.values() if error is not None]

    def _traces(self) -> dict[str, tuple[int, int, int]]:
        """Return size, modification time and access time of every file outside. This does not change them."""
        found = {}
        for folder, _, names in os.walk(self.outside):
            for name in names:
                status = os.lstat(Path(folder) / name)
                found[name] = status.st_size, status.st_mtime_ns, status.st_atime_ns
        return found


def read_index_entries_of(root: Path) -> list[str]:
    """Return the names of the index files of the newest snapshot."""
    store = LocalTable(root).store
    latest = store.snapshots.latest()
    assert latest is not None
    return [entry.file.file_name for entry in read_index_entries(store.file_io, store.paths, latest)]


def _read(root: Path) -> list[Row]:
    table = FileTable(root)
    table.is_sound = False  # Changed metadata may lack a deletion vector, which the format cannot detect.
    return table.read(None, None)


def _read_tag(root: Path) -> None:
    store = LocalTable(root).store
    FileTable(root).scanned(plan_read(store, store.tags.get("kept").snapshot, None))


def _changelog(root: Path) -> None:
    store = LocalTable(root).store
    plan = plan_changelog(store, 0, store.snapshots.latest_id() or 0, ChangelogMode.DELTA, None)
    FileTable(root).changes(plan)


def _looked_at(root: Path) -> None:
    store = LocalTable(root).store
    for snapshot in store.snapshots.list():
        plan_read(store, snapshot, None)
    store.snapshots.at_or_before(1 << 45)
    store.tags.names()
    Committer(store).committed("unknown", 5)


def _count(root: Path) -> None:
    store = LocalTable(root).store
    latest = store.snapshots.latest()
    for fresh in (False, True):
        metadata_count(store, latest, None, fresh)
    table_status(store, latest, 0, 0, max_buckets=9)


def _write(root: Path) -> None:
    """Write a row of the table's present schema, if it can be converted."""
    table = LocalTable(root)
    values = dict(zip(("p", "id", "v", "a"), NEW_ROW))
    try:
        fields = table.store.schema.fields
        columns = {field.name: pa.array([values.get(field.name)], to_arrow(field.type)) for field in fields}
    except pa.ArrowException:
        return
    table.write_columns(pa.table(columns))


def _compact(root: Path) -> None:
    LocalTable(root).compact(full=True)


#: The operations on a table. Those that return rows return all rows of the table.
OPERATIONS: dict[str, Callable[[Path], list[Row] | None]] = {
    "read": _read,
    "read a tag": _read_tag,
    "changelog": _changelog,
    "look at": _looked_at,
    "count": _count,
    "write": _write,
    "compact": _compact,
    "read again": _read,
}


@cache
def _template(folder: Path) -> Path:
    """Create the undamaged table, once for each run."""
    root = folder / "table"
    columns = "p STRING NOT NULL, id INT NOT NULL, v STRING, a ARRAY<INT>"
    options: dict[str, Any] = {"bucket": "-1", "dynamic-bucket__target-row-num": "5", "changelog-producer": "input"}
    table = LocalTable(root, columns, ("p", "id"), ("p",), **options)
    table.write(*(("a", key, f"v{key}", [key, key]) for key in range(12)))
    table.write(*(("b", key, f"v{key}", [key, key]) for key in range(8)))
    table.compact(full=True)
    table.write(*(("a", key, f"again {key}", [key]) for key in range(4)))
    tag = Tag(table.latest)
    (root / "tag").mkdir()
    (root / "tag" / "tag-kept").write_text(tag.to_json())
    table.delete(("b", 6, None, None), ("b", 7, None, None))
    forget_checksums(root)
    assert sorted(_read(root)) == sorted(ROWS)
    return root


@cache
def _masked_template(folder: Path) -> Path:
    """Create the same rows with deletion vectors; one index file of a bucket has two."""
    root = folder / "masked"
    options = {"deletion_vectors__enabled": "true", "compaction__size_ratio": "0", "target_file_size": "1 b"}
    columns = "p STRING NOT NULL, id INT NOT NULL, v STRING, a ARRAY<INT>"
    table = LocalTable(root, columns, ("p", "id"), ("p",), **options, num_sorted_run__compaction_trigger="9")
    table.write(*(("a", key, f"v{key}", [key, key]) for key in range(6)), ("b", 0, "v0", [0, 0]))
    table.compact(full=True)
    table.write(*(("a", key, f"v{key}", [key, key]) for key in range(6, 12)))
    table.write(*(("b", key, f"v{key}", [key, key]) for key in range(1, 8)))
    table.compact(full=False)
    table.write(*(("a", key, f"again {key}", [key]) for key in range(4)), ("a", 7, "v7", [7, 7]))
    table.delete(("b", 6, None, None), ("b", 7, None, None))
    table.compact(full=False)
    (root / "tag").mkdir()
    (root / "tag" / "tag-kept").write_text(Tag(table.latest).to_json())
    forget_checksums(root)
    assert sorted(_read(root)) == sorted(ROWS)
    return root


def forget_checksums(root: Path) -> None:
    """Remove checksums and sizes of metadata, which other writers leave out and an attacker can remove."""
    for path in root.glob("manifest/manifest-list-*"):
        metas = decode_manifest_list(path.read_bytes(), path.name)
        path.write_bytes(encode_manifest_list([replace(meta, checksum=None) for meta in metas]))
    for path in root.glob("manifest/index-manifest-*"):
        entries = decode_index_manifest(path.read_bytes(), path.name)
        kept_files = [replace(entry, file=replace(entry.file, checksum=None)) for entry in entries]
        path.write_bytes(encode_index_manifest(kept_files))
    for path in [*root.glob("snapshot/snapshot-*"), *root.glob("tag/*")]:
        document = json.loads(path.read_bytes())
        kept = {key: value for key, value in document.items() if key != CHECKSUMS_KEY and not key.endswith("ListSize")}
        path.write_text(json.dumps(kept))


def hostile_table(folder: Path, template_folder: Path, masked: bool = False) -> HostileTable:
    """Copy the table, or the one with deletion vectors, to ``folder``, with decoys of its files beside it."""
    template = (_masked_template if masked else _template)(template_folder)
    root, outside = folder / "warehouse" / "t", folder / "outside"
    shutil.copytree(template, root)
    outside.mkdir()
    for path in template.rglob("*"):
        if path.is_file():
            decoy = outside / path.name
            shutil.copy(path, decoy)
            # An access time before the modification time: file systems then record the next access.
            os.utime(decoy, (1_000_000_000, 1_600_000_000))
    return HostileTable(root, outside)
