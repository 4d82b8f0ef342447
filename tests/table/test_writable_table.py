"""Writes with a commit user and batch id; rows without effect."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelsm.errors import CommitUserTakenError, InvalidInputError
from lakelsm.local.local_engine import LocalEngine
from lakelsm.results import CommitResult
from lakelsm.snapshots.manifest_scan import read_live_entries
from lakelsm.table.writable_table import known_batch, publish_batch
from lakelsm.write.batch_write import BatchResult, BatchWriter
from tests.engines import TableEngine, each_case
from tests.table_files import root_of


def test_a_repeated_batch_writes_nothing_and_a_batch_id_needs_a_range_and_a_user(tmp_path: Path) -> None:
    local = TableEngine("local")
    table = local.create(tmp_path, "id INT, v INT", ["id"])
    for batch in (1, 2, 3):
        local.write(table, [(batch, batch)], commit_user="job", batch_id=batch)
    again = local.write(table, [(9, 9)], commit_user="job", batch_id=2)
    assert again == CommitResult(snapshot_id=2, already_committed=True)
    for user, batch, named in (("job", -1, "batch_id"), ("job", 2**63 - 1, "batch_id"), (None, 1, "commit_user")):
        with pytest.raises(InvalidInputError, match=named):
            local.write(table, [], commit_user=user, batch_id=batch)
    assert table.explain().snapshot_id == 3


def test_of_two_queries_with_one_user_the_later_one_deletes_its_files(tmp_path: Path) -> None:
    table = TableEngine("local").create(tmp_path, "id INT, v INT", ["id"])
    store, engine = table._store(), LocalEngine()

    def written(query: str, before: Callable[[], object]) -> CommitResult:
        rows = engine.prepared_rows(store, [{"id": 1, "v": 1}])

        def write(writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
            before()
            return writer.append(rows, user, identifier)

        return publish_batch(engine, store, write, "u", 0, query_id=query)

    with pytest.raises(CommitUserTakenError, match="belongs to streaming query 'two'"):
        written("one", lambda: written("two", lambda: None))
    (entry,) = read_live_entries(store.file_io, store.paths, store.snapshots.latest())
    assert [path.name for path in root_of(table).rglob("data-*")] == [entry.file.file_name]
    with pytest.raises(CommitUserTakenError):
        known_batch(store, "u", 1, query_id="one")


_GROUPS = {"merge-engine": "partial-update", "fields.g.sequence-group": "v", "fields.h.sequence-group": "w"}
_SUM = {"merge-engine": "aggregation", "fields.default-aggregate-function": "sum"}
#: Options of a table (id, v, g, w, h), its batch of (kind, v, g, w, h) on the row (1, 1, 1, 1) of each key, which of the
#: batch's rows have no effect, and what the warning says.
_IGNORED: dict[str, tuple[dict[str, str], str, list[int], str | None]] = {
    "deduplicate": ({}, "+I 2222,-U ----,-D ----", [], None),
    "sequence field": ({"sequence.field": "g"}, "-D -2--,-D ----", [], None),
    "ignore delete": ({"ignore-delete": "true"}, "+U 2222,-U 1111,-D 2222,-D ----", [1, 2, 3], "2 rows .*The table's"),
    "ignore update before": ({"ignore-update-before": "true"}, "-U 1111,-D 1111", [0], None),
    "first row": ({"merge-engine": "first-row", "ignore-delete": "true"}, "-D 1111", [0], "1 row .*The table's opt"),
    "removes": (
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}, "-U 1111,-D ----", [0],
        None,
    ),
    "groups": (_GROUPS, "-D ----,-D 1-1-,-U ----,-D -2--,-D --12", [0, 1, 2], r"2 rows .*Their .* \(g, h\) are all NULL"),
    "removing groups": (
        {**_GROUPS, "partial-update.remove-record-on-sequence-group": "g"}, "-D ----,-D ---2,-D -2--", [0],
        r"1 row .*Their .* in one of them\.$",
    ),
    "aggregation": (_SUM, "-D ----,-U ----,-D 1---", [0, 1], "1 row .*No column retracts their values"),
    "last value": ({**_SUM, "fields.v.aggregate-function": "last_value"}, "-D ----", [], None),
    "sums by a sequence": ({**_SUM, "sequence.field": "g"}, "-D ----,-D -2--", [0], "1 row .*No column"),
    "ignore retract": (
        {"merge-engine": "aggregation", **{f"fields.{name}.ignore-retract": "true" for name in "vgwh"}}, "-D 1111", [0],
        "1 row .*No column retracts",
    ),
    "removing aggregation": ({**_SUM, "aggregation.remove-record-on-delete": "true"}, "-D ----,-U ----", [1], None),
}  # fmt: skip


@each_case("case", _IGNORED, ["ignore delete", "groups", "aggregation"])
def test_retractions_without_effect_are_counted_and_warned_about(engine: TableEngine, tmp_path: Path, case: str) -> None:
    options, texts, ignored, warning = _IGNORED[case]
    batch = [
        (text[:2], key, *(None if value == "-" else int(value) for value in text[3:]))
        for key, text in enumerate(texts.split(","))
    ]
    found = []
    for name, rows in (("db.all", batch), ("db.less", [row for at, row in enumerate(batch) if at not in ignored])):
        columns, more = "id INT, v INT, g INT, w INT, h INT", {"bucket": "2", **options}
        table = engine.create(tmp_path, columns, ["id"], options=more, name=name)
        assert engine.write(table, [(key, 1, 1, 1, 1) for key in range(len(batch))]).ignored_rows == 0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            result = engine.write(table, rows, "kind")
        warned = [str(each.message) for each in caught if "ignored" in str(each.message)]
        if name == "db.all":
            assert result.ignored_rows == len(ignored) and len(warned) == (warning is not None)
            assert warning is None or re.search(f"Table .*: ignored {warning}", warned[0])
        else:
            assert (result.ignored_rows, warned) == (0, [])
        found.append(engine.rows(table))
    assert found[0] == found[1]


def test_rows_without_effect_are_counted_in_overwrites_and_in_frames_with_fewer_columns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    local = TableEngine("local")
    updated = local.create(tmp_path, "id INT, v INT, g INT, w INT, h INT", ["id"], options=_GROUPS)
    updated.write({"id": [1, 2], "v": [1, 1], "g": [1, 1]})
    with pytest.warns(UserWarning, match="ignored 2 rows of kind -D"):
        result = updated.write([{"id": 1, "op": "-D"}, {"id": 2, "op": "-D"}, {"id": 2, "op": "-U"}], "op")
    assert (result.ignored_rows, updated.count().rows) == (3, 2)
    assert [record.levelname for record in caplog.records if "ignored" in record.message] == ["WARNING"]
    options = {"rowkind.field": "op", "ignore-delete": "true"}
    with_kinds = local.create(tmp_path, "id INT, op STRING", ["id"], options=options, name="db.marked")
    with pytest.warns(UserWarning, match="ignored 1 row of kind -D"):
        result = with_kinds.overwrite([{"id": 1, "op": "-D"}, {"id": 2, "op": "+I"}])
    assert (result.ignored_rows, result.rows, local.rows(with_kinds)) == (1, 1, [(2, "+I")])
