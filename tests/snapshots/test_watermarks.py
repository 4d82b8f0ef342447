"""Snapshots found by their watermark, by calls and in SQL."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.snapshots.watermarks import first_with_watermark, newest_with_watermark
from tests.table_files import root_of

#: Watermarks of the snapshots 1 to 8: two of another engine without one, then those of writes and of other commits.
WATERMARKS = [None, -(2**63), 1000, 1000, 2000, 2000, 2000, 5000]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    options = {"bucket": "1", "write-only": "true"}
    found = Catalog(str(tmp_path)).create_table("db.t", "k INT, at TIMESTAMP(3)", primary_key="k", options=options)
    for number, watermark in enumerate(WATERMARKS, start=1):
        second = datetime.fromtimestamp((watermark or 0) // 1000, timezone.utc) if number > 2 else None
        is_write = number > 2 and watermark != WATERMARKS[number - 2]
        rows = [{"k": number, "at": None if second is None else second.replace(tzinfo=None)}]
        found.write(rows, **({"event_time": "at"} if is_write else {}))  # type: ignore[arg-type]
        if number == 2:
            file = Path(root_of(found), "snapshot", "snapshot-2")
            file.write_text(json.dumps({**json.loads(file.read_text()), "watermark": watermark}))
    assert [each.watermark for each in found._store().snapshots.list()] == WATERMARKS
    return found


def test_the_first_snapshot_at_and_the_newest_up_to_a_watermark(table: Table) -> None:
    store = table._store()
    for watermark in range(-1000, 6001, 500):
        known = [(each, number) for number, each in enumerate(WATERMARKS, start=1) if each is not None and each > -1000]
        later = [number for each, number in known if each >= watermark]
        earlier = [number for each, number in known if each <= watermark]
        for found, find in ((later[:1], first_with_watermark), (earlier[-1:], newest_with_watermark)):
            if found:
                assert find(store, watermark).id == found[0]
            else:
                with pytest.raises(SnapshotNotFoundError, match="Its newest snapshot 8 has the watermark 5000"):
                    find(store, watermark)


def test_views_and_queries_at_a_watermark(table: Table, tmp_path: Path) -> None:
    views = [
        table.at(watermark=1001),
        table.at(watermark="1970-01-01 00:00:01.5"),
        table.at(watermark=datetime(1970, 1, 1, 0, 0, 2, tzinfo=timezone.utc)),
    ]
    assert [view.snapshot_id for view in views] == [5, 5, 5]
    assert table.at(watermark=-(2**63)).snapshot_id == 3
    catalog = Catalog(str(tmp_path))

    def rows(text: str) -> int:
        return catalog.sql(f"SELECT count(*) FROM db.t {text}", engine="local").to_arrow().column(0)[0].as_py()  # type: ignore[union-attr,no-any-return]

    assert [rows(f"VERSION AS OF 'watermark-{each}'") for each in (0, 1001, 5000)] == [3, 5, 8]
    assert rows("/*+ OPTIONS('scan.watermark' = '2000') */") == 5
    table.tags.create("watermark-0", 1)
    assert rows("VERSION AS OF 'watermark-0'") == 1
    with pytest.raises(SnapshotNotFoundError, match="no snapshot has the watermark 5001 or a later one"):
        rows("VERSION AS OF 'watermark-5001'")
    with pytest.raises(SnapshotNotFoundError, match="tag 'watermark-soon' does not exist"):
        rows("VERSION AS OF 'watermark-soon'")
    with pytest.raises(InvalidInputError, match=r"'scan\.watermark': 'soon' is not a watermark"):
        rows("/*+ OPTIONS('scan.watermark' = 'soon') */")


@pytest.mark.parametrize("wrong", [True, 1.5, 2**63, "soon", [1]])
def test_wrong_watermarks_are_refused(table: Table, wrong: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^watermark: "):
        table.at(watermark=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="expected one of"):
        table.at(watermark=1, snapshot=1)


def test_tags_and_rollbacks_by_watermark(table: Table, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))

    def call(text: str) -> None:
        catalog.sql(f"CALL sys.{text}", engine="local")

    call("create_tag_from_watermark('db.t', 'two', 1500)")
    table.tags.create("one", 4)
    table.maintenance.expire_snapshots(retain_last=1, older_than="0 s", max_deletes=6)
    call("create_tag_from_watermark(table => 'db.t', tag => 'again', watermark => 900, time_retained => '1 d')")
    call("create_tag_from_watermark('db.t', 'last', '2001')")
    assert {tag.name: tag.snapshot_id for tag in table.tags.list()} == {"two": 5, "one": 4, "again": 4, "last": 8}
    with pytest.raises(SnapshotNotFoundError, match="no snapshot has the watermark 5001"):
        call("create_tag_from_watermark('db.t', 'none', 5001)")
    with pytest.raises(SnapshotNotFoundError, match="1999 or an earlier one"):
        call("rollback_to_watermark('db.t', 1999)")
    call("rollback_to_watermark('db.t', 4999)")
    assert table.inspect.snapshots().to_arrow()["snapshot_id"].to_pylist()[-1] == 7
    with pytest.raises(InvalidInputError, match="watermark is 'soon', and a whole number"):
        call("rollback_to_watermark('db.t', 'soon')")


def test_a_table_without_watermarks(tmp_path: Path) -> None:
    empty = Catalog(str(tmp_path)).create_table("db.e", "k INT", primary_key="k")
    with pytest.raises(SnapshotNotFoundError, match="has no snapshots"):
        empty.at(watermark=0)
    empty.write([{"k": 1}])
    with pytest.raises(SnapshotNotFoundError, match="Its newest snapshot 1 has no watermark"):
        newest_with_watermark(empty._store(), 2**63 - 1)
