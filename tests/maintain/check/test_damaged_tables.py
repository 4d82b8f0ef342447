"""A table is damaged in each way that a rule forbids. A check reports exactly this rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from lakelsm.format.index.index_manifest import IndexManifestEntry
from lakelsm.format.manifest import EMPTY_STATS, FileKind, ManifestEntry
from lakelsm.format.manifest.manifest_list import ManifestFileMeta
from lakelsm.format.row.binary_row import encode_row
from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.maintain.check.rules import RULES
from lakelsm.snapshots.manifest_scan import read_index_entries
from lakelsm.types import parse_type
from tests.maintain.check.edited_table import EditedTable, edited_table

Damage = Callable[[EditedTable], object]
PathOf = Callable[[EditedTable], Path]
Sample = Callable[[str], EditedTable]


def deleted(path: PathOf) -> Damage:
    return lambda table: path(table).unlink()


def noise(path: PathOf) -> Damage:
    return lambda table: path(table).write_bytes(b"\x07" * path(table).stat().st_size)


def cut(path: PathOf) -> Damage:
    return lambda table: path(table).write_bytes(path(table).read_bytes()[:-1])


def written(path: str, text: str) -> Damage:
    def damage(table: EditedTable) -> None:
        (table.root / path).parent.mkdir(parents=True, exist_ok=True)
        (table.root / path).write_text(text)

    return damage


def of_list(**changes: object) -> Damage:
    return lambda table: table.edit_list(lambda metas: [replace(meta, **changes) for meta in metas])  # type: ignore


def of_file(**changes: object) -> Damage:
    return lambda table: table.edit_file(**changes)


def key(*values: int) -> bytes:
    return encode_row(values, [parse_type("INT NOT NULL")])


def text(value: str) -> bytes:
    return encode_row([value], [parse_type("STRING")])


def index_file(table: EditedTable) -> Path:
    """Return the index file of the last bucket."""
    entries = read_index_entries(table.store.file_io, table.store.paths, table.latest)
    return table.root / "index" / max(entries, key=lambda entry: (entry.partition, entry.bucket)).file.file_name


def changelog_file(table: EditedTable) -> Path:
    return next(table.root.rglob("changelog-*.parquet"))


def sidecar(table: EditedTable) -> Path:
    return next(table.root.rglob("*.index"))


def added_twice(entries: list[ManifestEntry]) -> list[ManifestEntry]:
    return [*entries, next(entry for entry in entries if entry.kind == FileKind.ADD)]


def deletes_unknown(entries: list[ManifestEntry]) -> list[ManifestEntry]:
    first = entries[0]
    return [*entries, replace(first, kind=FileKind.DELETE, file=replace(first.file, file_name="data-x-0.parquet"))]


def other_partitions(meta: ManifestFileMeta) -> ManifestFileMeta:
    return replace(meta, partition_stats=replace(meta.partition_stats, min_values=text("q"), max_values=text("z")))


def second_vector(entries: list[IndexManifestEntry]) -> list[IndexManifestEntry]:
    first, *others = entries
    return [replace(first, file=replace(first.file, dv_ranges=(first.file.dv_ranges or ())[:1] * 2)), *others]


def vector_without_file(entries: list[IndexManifestEntry]) -> list[IndexManifestEntry]:
    first, *others = entries
    one, *more = first.file.dv_ranges or ()
    ranges = (replace(one, data_file_name="data-missing-0.parquet"), *more)
    return [replace(first, file=replace(first.file, dv_ranges=ranges)), *others]


def to_level_of_others(table: EditedTable) -> None:
    """Move the entry of a level-0 file to a level with files that it overlaps."""
    table.edit_file(level=max(entry.file.level for entry in table.live()))


def put_back(table: EditedTable) -> None:
    """Simulate a rollback to an expired snapshot that was killed before it removed anything."""
    written("consumer/consumer-lakelsm-rollback-to-1", '{"nextSnapshot": 1}')(table)
    (table.root / "snapshot" / "snapshot-2").unlink()


#: Rules with tests elsewhere: tests/maintain/check/test_branch_references.py, tests/test_files_of_other_formats.py.
NOT_MADE = {"changelog-gap", "changelog-entry", "data-file-format"}

#: The sample, the damage, and the rule that it breaks.
METADATA: dict[str, tuple[str, Damage, str]] = {
    "a schema file is missing": ("lookup", deleted(lambda t: t.root / "schema" / "schema-0"), "schema-unreadable"),
    "a snapshot is no JSON": ("lookup", noise(lambda t: t.root / "snapshot" / "snapshot-2"), "snapshot-unreadable"),
    "a snapshot is missing": ("lookup", deleted(lambda t: t.root / "snapshot" / "snapshot-2"), "snapshot-gap"),
    "LATEST is ahead": ("lookup", written("snapshot/LATEST", "9999"), "latest-hint"),
    "LATEST is behind": ("lookup", written("snapshot/LATEST", "1"), "stale-hint"),
    "LATEST is not a number": ("lookup", written("snapshot/LATEST", "x"), "stale-hint"),
    "EARLIEST names no snapshot": ("lookup", written("snapshot/EARLIEST", "77"), "stale-hint"),
    "an expiry was killed": ("lookup", written("snapshot/EARLIEST", "2"), "expiry-unfinished"),
    "a rollback was killed": (
        "lookup", written("consumer/consumer-lakelsm-rollback-to-1", '{"nextSnapshot": 1}'), "rollback-unfinished",
    ),
    "a rollback was killed to what had expired": (
        "lookup", written("consumer/consumer-lakelsm-rollback-to-0", '{"nextSnapshot": 0}'), "rollback-unfinished",
    ),
    "a rollback was killed that puts a snapshot back": ("lookup", put_back, "rollback-unfinished"),
    "a total is wrong": ("lookup", lambda t: t.edit_snapshot(totalRecordCount=1), "snapshot-counts"),
    "a difference is wrong": ("lookup", lambda t: t.edit_snapshot(deltaRecordCount=-7), "snapshot-counts"),
    "a changelog's count": ("changelog", lambda t: t.edit_snapshot(changelogRecordCount=1), "snapshot-counts"),
    "a tag is no JSON": ("lookup", noise(lambda t: t.root / "tag" / "tag-kept"), "tag-unreadable"),
    "a changelog is no JSON": ("lookup", written("changelog/changelog-1", "{}"), "changelog-unreadable"),
    "a consumer is no JSON": ("lookup", written("consumer/consumer-a", "1"), "consumer-unreadable"),
    "a consumer is behind": ("lookup", written("consumer/consumer-a", '{"nextSnapshot": 0}'), "consumer-behind"),
    "a branch has no schema": ("lookup", written("branch/branch-b/snapshot/LATEST", "1"), "branch-unreadable"),
    "a branch is incomplete": ("lookup", written("branch/branch-b/schema/schema-1", "{}"), "branch-unfinished"),
    "the making of a tag was killed": ("lookup", written("tag/tag-lakelsm-holds-1", "{"), "tag-unfinished"),
    "statistics are missing": ("lookup", lambda t: t.edit_snapshot(statistics="stat-x-0"), "statistics-unreadable"),
    "a manifest list is missing": (
        "lookup", deleted(lambda t: t.manifest_dir / t.latest.delta_manifest_list), "manifest-list-unreadable",
    ),
    "a manifest is missing": ("lookup", deleted(lambda t: t.delta_manifest), "manifest-unreadable"),
    "a manifest is noise": ("lookup", noise(lambda t: t.delta_manifest), "manifest-unreadable"),
    "a manifest is named twice": ("lookup", lambda t: t.edit_list(lambda metas: metas * 2), "manifest-twice"),
    "a manifest is stray": ("lookup", written(f"manifest/manifest-{UUID(int=7)}-0", "Obj"), "manifest-stray"),
    "a manifest list is stray": ("lookup", written(f"manifest/manifest-list-{UUID(int=7)}-0", ""), "manifest-stray"),
    "a list counts wrongly": ("lookup", of_list(num_added_files=7), "manifest-counts"),
    "a list's buckets": ("lookup", of_list(min_bucket=1, max_bucket=3), "manifest-ranges"),
    "a list's levels": ("lookup", of_list(min_level=4, max_level=4), "manifest-ranges"),
    "a list's partitions": (
        "lookup", lambda t: t.edit_list(lambda metas: list(map(other_partitions, metas))), "manifest-ranges",
    ),
    "a file is added twice": ("lookup", lambda t: t.edit_entries(added_twice), "file-twice"),
    "a file is deleted that was never added": ("lookup", lambda t: t.edit_entries(deletes_unknown), "file-not-added"),
    "a file is elsewhere": ("lookup", of_file(external_path="file:/tmp/x"), "file-entry"),
    "more retractions than rows": ("lookup", of_file(delete_row_count=99), "manifest-unreadable"),
    "a negative level": ("lookup", of_file(level=-1), "manifest-list-unreadable"),
    "sequence numbers the wrong way round": (
        "lookup", of_file(min_sequence_number=9, max_sequence_number=8), "manifest-unreadable",
    ),
    "a file without rows": ("lookup", of_file(row_count=0, delete_row_count=0), "file-entry"),
    "a negative sequence number": ("lookup", of_file(min_sequence_number=-1), "file-entry"),
    "keys the wrong way round": ("lookup", of_file(min_key=key(9), max_key=key(8)), "file-entry"),
    "an invalid key": ("lookup", of_file(min_key=b"\0\0"), "file-entry"),
    "a schema that is not there": ("lookup", of_file(schema_id=77), "schema-unreadable"),
    "a data file is missing": ("lookup", deleted(lambda t: t.newest_file), "data-file-missing"),
    "a data file is cut": ("lookup", cut(lambda t: t.newest_file), "data-file-size"),
    "a changelog file is missing": ("changelog", deleted(changelog_file), "changelog-file-missing"),
    "a changelog file is cut": ("changelog", cut(changelog_file), "changelog-file-size"),
    "a file of indexes is missing": ("indexed", deleted(sidecar), "file-index-missing"),
    "an index manifest is noise": (
        "vectors", noise(lambda t: t.manifest_dir / str(t.latest.index_manifest)), "index-manifest-unreadable",
    ),
    "an index file is missing": ("dynamic", deleted(index_file), "index-file-missing"),
    "an index file is cut": ("vectors", cut(index_file), "index-file-size"),
    "files overlap on a level": ("partial-update", to_level_of_others, "level-overlap"),
    "an unknown level": ("lookup", of_file(level=40), "level-beyond"),
    "older rows on a lower level": (
        "partial-update", of_file(min_sequence_number=0, max_sequence_number=0), "level-order",
    ),
    "a sequence number beyond the bound": ("lookup", of_file(max_sequence_number=1 << 40), "sequence-range"),
    "another number of buckets": ("partial-update", of_file(total_buckets=3), "bucket-count"),
    "two vectors of a file": ("vectors", lambda t: t.edit_index(second_vector), "vector-place"),
    "a vector of no file": ("vectors", lambda t: t.edit_index(vector_without_file), "vector-without-file"),
    "a bucket without a HASH index": ("dynamic", lambda t: t.edit_index(lambda entries: entries[1:]), "hash-index-place"),
    "a bucket with two HASH indexes": (
        "dynamic", lambda t: t.edit_index(lambda entries: [*entries, entries[0]]), "hash-index-place",
    ),
}


def with_column(name: str, values: Callable[[list[object]], list[object]]) -> Callable[[pa.Table], pa.Table]:
    """Return a change that replaces the values of a column."""

    def change(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(name)
        changed = pa.array(values(rows.column(name).to_pylist()), rows.schema.types[at])
        return rows.set_column(at, rows.schema.field(at), changed)

    return change


def swapped(rows: pa.Table) -> pa.Table:
    return rows.take(pa.array([0, 2, 1, *range(3, len(rows))]))


def of_rows(change: Callable[[pa.Table], pa.Table], **changes: object) -> Damage:
    return lambda table: table.rewrite_file(change, **changes)


def flipped(path: PathOf, at: float) -> Damage:
    """Return a damage that changes one byte, at a fraction of the file's length."""

    def damage(table: EditedTable) -> None:
        data = bytearray(path(table).read_bytes())
        data[int(len(data) * at)] ^= 0x55
        path(table).write_bytes(bytes(data))

    return damage


def in_other_bucket(table: EditedTable) -> None:
    path = table.newest_file
    other = path.parent.with_name("bucket-1" if path.parent.name == "bucket-0" else "bucket-0")
    other.mkdir(exist_ok=True)
    path.rename(other / path.name)
    table.edit_file(bucket=int(other.name[-1]))


def other_bounds(table: EditedTable) -> None:
    (entry,) = [entry for entry in table.live() if table.path_of(entry) == table.newest_file]
    stats = entry.file.value_stats
    table.edit_file(value_stats=replace(stats, max_values=stats.min_values))


def other_nulls(table: EditedTable) -> None:
    (entry,) = [entry for entry in table.live() if table.path_of(entry) == table.newest_file]
    stats = entry.file.value_stats
    table.edit_file(value_stats=replace(stats, null_counts=(1, *(stats.null_counts or ())[1:])))


def one_hash_more(entries: list[IndexManifestEntry]) -> list[IndexManifestEntry]:
    first, *others = entries
    return [replace(first, file=replace(first.file, row_count=first.file.row_count + 1)), *others]


def hash_of_another_bucket(table: EditedTable) -> None:
    """Add a hash of another bucket of the partition to a HASH index."""

    def change(entries: list[IndexManifestEntry]) -> list[IndexManifestEntry]:
        first = entries[0]
        other = next(e for e in entries[1:] if e.partition == first.partition)
        hashes, more = ((table.root / "index" / entry.file.file_name).read_bytes() for entry in (first, other))
        (table.root / "index" / "index-x-0").write_bytes(hashes + more[:4])
        size = len(hashes) + 4
        grown = replace(first.file, file_name="index-x-0", row_count=size // 4, file_size=size)
        return [replace(first, file=grown), *entries[1:]]

    table.edit_index(change)


def lost_hash(table: EditedTable) -> None:
    """Replace one hash in the HASH index of a bucket with files."""
    path = index_file(table)
    path.write_bytes(b"\x01\x02\x03\x04" + path.read_bytes()[4:])


#: The same for rules that need the rows of data files.
DATA: dict[str, tuple[str, Damage, str]] = {
    "a footer is damaged": ("lookup", flipped(lambda t: t.newest_file, 0.9), "data-file-footer"),
    "an entry is of another file": ("lookup", of_file(row_count=7), "data-file-footer"),
    "a page is damaged": ("lookup", flipped(lambda t: t.newest_file, 0.1), "data-file-unreadable"),
    "rows are out of order": ("partial-update", of_rows(swapped), "row-order"),
    "a key is twice in a file": (
        "partial-update", of_rows(with_column("id", lambda ids: [ids[0], *ids[:1], *ids[2:]])), "row-order",
    ),
    "a file begins with another key": ("partial-update", of_rows(lambda rows: rows, min_key=key(-5)), "key-range"),
    "sequence numbers beyond the entry's": (
        "partial-update",
        of_rows(with_column("_SEQUENCE_NUMBER", lambda numbers: [n - 20 for n in numbers])),
        "row-sequences",
    ),
    "retractions that there are not": ("lookup", of_file(delete_row_count=2), "row-kinds"),
    "an unknown row kind": (
        "partial-update", of_rows(with_column("_VALUE_KIND", lambda kinds: [8, *kinds[1:]])), "row-kinds",
    ),
    "keys of another bucket": ("aggregation", in_other_bucket, "row-bucket"),
    "rows of another partition": (
        "partial-update",
        of_rows(with_column("dt", lambda texts: ["q"] * len(texts)), value_stats_cols=(), value_stats=EMPTY_STATS),
        "row-partition",
    ),
    "bounds leave values out": ("lookup", other_bounds, "column-statistics"),
    "NULLs are counted wrongly": ("lookup", other_nulls, "column-statistics"),
    "a vector is damaged": ("vectors", flipped(index_file, 0.5), "vector-unreadable"),
    "a HASH index has fewer hashes": ("dynamic", lambda t: t.edit_index(one_hash_more), "hash-index-unreadable"),
    "a hash is in two buckets": ("dynamic", hash_of_another_bucket, "hash-index-twice"),
    "a key has no hash": ("dynamic", lost_hash, "hash-index-keys"),
    "indexes are damaged": ("indexed", flipped(lambda t: Path(f"{t.newest_file}.index"), 0.5), "file-index-unreadable"),
    "an index excludes a value": (
        "indexed", of_rows(with_column("v", lambda texts: [f"other {text}" for text in texts])), "file-index-false",
    ),
    "a key has two rows above level 0": ("vectors", lambda t: t.edit_index(lambda entries: []), "key-twice"),
}


@pytest.fixture
def sample(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Returns a new copy of a sample by its name."""
    return partial(edited_table, tmp_path, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("what", DATA)
def test_damaged_data_breaks_exactly_one_rule(sample: Sample, what: str) -> None:
    name, damage, rule = DATA[what]
    table = sample(name)
    damage(table)
    assert not table.check(data=CheckedData.NONE).findings
    result = table.check(data=CheckedData.FULL)
    assert {finding.rule for finding in result.findings} == {rule} and not result.ok, result.as_text()


def test_every_rule_has_a_damage_that_breaks_it() -> None:
    assert {rule for _, _, rule in (*METADATA.values(), *DATA.values())} >= RULES.keys() - NOT_MADE


@pytest.mark.parametrize("what", METADATA)
def test_damaged_metadata_breaks_exactly_one_rule(sample: Sample, what: str) -> None:
    name, damage, rule = METADATA[what]
    table = sample(name)
    damage(table)
    result = table.check()
    assert [finding.rule for finding in result.findings] == [rule], result.as_text()
    assert result.ok == (result.findings[0].severity == "warning")


def test_a_vector_without_a_file_is_no_finding_if_another_engine_has_written(sample: Sample) -> None:
    """Java does not change the vector of a file that it rewrites, and its later writers keep it."""
    table = sample("vectors")
    table.edit_index(vector_without_file)
    assert [finding.rule for finding in table.check().findings] == ["vector-without-file"]
    table.edit_snapshot(commitUser="java")
    assert not table.check().findings
