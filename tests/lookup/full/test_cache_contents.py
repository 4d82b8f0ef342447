"""Caches are known to have the same contents, or not, by a mark."""

from __future__ import annotations

from pathlib import Path

from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.full.cache_contents import CacheContents
from lakelsm.predicate.predicate import Compare
from lakelsm.schema_changes import AddColumn, SetOption
from tests.compact.local_table import LocalTable

COLUMNS = "id INT NOT NULL, g INT, v STRING, w STRING"


def test_the_layout_has_the_keys_and_what_is_found_once(tmp_path: Path) -> None:
    store = LocalTable(tmp_path / "t", COLUMNS).store
    contents = CacheContents.of(LookupSpec(store, ("g",), ("v", "g"), predicate=Compare("w", "=", "x")))
    assert contents.layout.schema.names == ["id", "g", "v"] and contents.read == ("id", "g", "v", "w")
    assert [[field.name for field in key] for key in contents.layout.keys] == [["id"], ["g"]]
    assert contents.asked == 1 and not contents.unique
    assert contents.found.names == ["v", "g"] and contents.no_keys.schema.names == ["g"]
    primary = CacheContents.of(LookupSpec(store, ("id",), ("v",)))
    assert len(primary.layout.keys) == 1 and primary.asked == 0 and primary.unique


def test_other_rows_columns_and_options_have_another_mark(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", COLUMNS)

    def mark(**changed: object) -> str:
        given: dict[str, object] = {"key": ("id",), "columns": ("v",), **changed}
        return CacheContents.of(LookupSpec(table.store, **given)).mark  # type: ignore[arg-type]

    marks = [
        mark(),
        mark(columns=("w",)),
        mark(key=("g",)),
        mark(predicate=Compare("v", "=", "x")),
        mark(buckets=frozenset({0})),
    ]
    assert len(set(marks)) == 5 and mark() == marks[0]
    table.alter(AddColumn("more", "INT"), SetOption("lookup.bootstrap-parallelism", "1"))
    assert mark() == marks[0], "neither concerns the rows"
    table.alter(SetOption("deletion-vectors.merge-on-read", "true"))
    assert mark() != marks[0]
