"""Tags are created automatically after commits, one for each period that has ended, as in Paimon."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.environment import Environment
from lakelsm.errors import InvalidInputError
from lakelsm.maintain.versions.tag_creation import create_after_commit
from lakelsm.maintain.versions.tags import create_tag, expire_after_commit, expire_tags
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, ReadingFileIO, add, file
from tests.maintain.versioned_table import rows

DAY = timedelta(days=1)
NOON = datetime(2026, 3, 1, 12)


def millis(time: datetime) -> int:
    return int(time.replace(tzinfo=timezone.utc).timestamp() * 1000)


class Committed:
    """A table with commits at given times. Automatic tags follow each commit."""

    def __init__(self, root: Path, **options: str) -> None:
        keys = {key.replace("_", "-").replace("--", "."): text for key, text in options.items()}
        self.file_io = ReadingFileIO()
        self.table = CommitTable(root / "t", {"tag.automatic-creation": "process-time", **keys}, self.file_io)
        self.around = Environment(local_offset=lambda seconds: 0)

    @property
    def store(self) -> TableStore:
        return TableStore.open(str(self.table.root))

    def commit(self, time: datetime, watermark: datetime | None = None, *, follow: bool = True) -> None:
        self.table.time = millis(time) - 1
        self.table.append(add(file(seq=(self.table.time, self.table.time))))
        newest = self.table.snapshots.latest_id() or 0
        self.table.rewrite(newest, time_millis=millis(time), watermark=watermark and millis(watermark))
        if follow:
            self.follow()

    def follow(self) -> None:
        create_after_commit(self.store, self.around)

    @property
    def tags(self) -> dict[str, int]:
        return {name: tag.snapshot.id for name, tag in self.store.tags.all().items()}


def test_the_first_commit_after_a_period_gets_its_tag(tmp_path: Path) -> None:
    made = Committed(tmp_path)
    made.commit(NOON)
    assert made.tags == {"2026-02-28": 1}, "the first commit gets the tag of the previous day"
    made.commit(NOON + 0.4 * DAY)
    assert list(made.tags) == ["2026-02-28"]
    made.commit(NOON + DAY)
    assert made.tags == {"2026-02-28": 1, "2026-03-01": 3}
    made.commit(NOON + 5 * DAY)
    assert made.tags == {"2026-02-28": 1, "2026-03-01": 3, "2026-03-05": 4}, "periods without commits have no tags"


def test_missing_tags_of_earlier_commits_are_created(tmp_path: Path) -> None:
    made = Committed(tmp_path)
    for number in range(40):
        made.commit(NOON + number * DAY / 4, follow=False)
    made.follow()
    assert list(made.tags.values()) == [1, *range(3, 40, 4)]
    before = made.tags
    made.follow()
    assert made.tags == before


def test_periods_without_a_commit_can_get_a_tag_of_a_later_commit(tmp_path: Path) -> None:
    made = Committed(tmp_path, tag__automatic_completion="true")
    made.commit(NOON)
    for number in range(4):
        made.commit(NOON + 3 * DAY + number * DAY / 24)
    assert made.tags == {"2026-02-28": 1, "2026-03-01": 2, "2026-03-02": 3, "2026-03-03": 4}


def test_a_tag_waits_for_late_rows(tmp_path: Path) -> None:
    made = Committed(tmp_path, tag__creation_delay="2 h", tag__creation_period="hourly")
    with pytest.raises(InvalidInputError, match=r"tag\.creation-delay.*not less than the period"):
        Catalog(str(tmp_path)).create_table(
            "db.t", "id INT", primary_key=["id"], options={**made.table.options, "bucket": "1"}
        )
    made = Committed(tmp_path / "b", tag__creation_delay="2 h")
    made.commit(NOON)
    made.commit(datetime(2026, 3, 2, 1, 59))
    assert list(made.tags) == ["2026-02-28"]
    made.commit(datetime(2026, 3, 2, 2))
    assert made.tags == {"2026-02-28": 1, "2026-03-01": 3}


def test_periods_follow_watermarks_if_the_option_is_set(tmp_path: Path) -> None:
    made = Committed(tmp_path, tag__automatic_creation="watermark", sink__watermark_time_zone="GMT+10:00")
    made.commit(NOON)
    assert made.tags == {}
    made.commit(NOON + 9 * DAY, NOON)
    made.commit(NOON + 9 * DAY, NOON + timedelta(hours=1))
    assert made.tags == {"2026-02-28": 2}, "22 and 23 o'clock"
    made.commit(NOON + 9 * DAY, NOON + timedelta(hours=3))
    assert made.tags == {"2026-02-28": 2, "2026-03-01": 4}


@pytest.mark.parametrize("watermark", [-(2**63), 2**63 - 1])
def test_the_watermark_at_the_end_of_a_stream_is_not_a_time(tmp_path: Path, watermark: int) -> None:
    made = Committed(tmp_path, tag__automatic_creation="watermark")
    made.commit(NOON, follow=False)
    made.table.rewrite(1, watermark=watermark)
    made.follow()
    assert made.tags == {}


def test_the_zone_of_commits_can_be_chosen(tmp_path: Path) -> None:
    made = Committed(tmp_path, sink__process_time_zone="Asia/Tokyo")
    made.commit(datetime(2026, 3, 1, 15))
    assert list(made.tags) == ["2026-03-01"]


def test_only_the_newest_automatic_tags_are_kept(tmp_path: Path) -> None:
    made = Committed(tmp_path, tag__num_retained_max="2")
    store = made.store
    made.commit(NOON)
    made.file_io.write(store.paths.tag("mine"), made.file_io.read(store.paths.tag("2026-02-28")))
    for number in range(1, 5):
        made.commit(NOON + number * DAY)
    assert list(made.tags) == ["2026-03-03", "2026-03-04", "mine"]


def test_a_commit_within_a_period_reads_only_the_newest_snapshot_and_tag(tmp_path: Path) -> None:
    made = Committed(tmp_path)
    for number in range(20):
        made.commit(NOON + number * DAY / 100, follow=number == 0)
    store = TableStore(file_io=made.file_io, paths=made.table.paths, schema=made.store.schema, options=made.store.options)
    made.file_io.reads.clear()
    create_after_commit(store, made.around)
    looked = [name for name in made.file_io.reads if name not in ("LATEST", "snapshot-21")]
    assert looked == ["snapshot-20", "tag-2026-02-28"]


def test_a_batch_tag_is_replaced_by_the_next_batch_of_the_day(tmp_path: Path) -> None:
    made = Committed(tmp_path, tag__automatic_creation="batch", tag__num_retained_max="2")
    for day in (0, 0.2, 1, 2):
        made.commit(NOON + day * DAY)
    assert made.tags == {"batch-write-2026-03-02": 3, "batch-write-2026-03-03": 4}
    named = Committed(tmp_path / "b", tag__automatic_creation="batch", tag__batch__customized_name="newest")
    for day in (0, 1):
        named.commit(NOON + day * DAY)
    assert named.tags == {"newest": 2}


def test_tags_have_the_default_retention_time_of_the_table(tmp_path: Path) -> None:
    made = Committed(tmp_path, tag__default_time_retained="2 d")
    made.around = Environment(clock=lambda: millis(NOON), local_offset=lambda seconds: 0)
    made.commit(NOON)
    for days, left in ((1.9, 1), (2.1, 0)):
        later = Environment(clock=lambda days=days: millis(NOON + days * DAY), local_offset=lambda seconds: 0)  # type: ignore[misc]
        expire_tags(made.store, environment=later)
        assert len(made.tags) == left


def test_tags_without_a_retention_time_expire_only_by_a_given_age(tmp_path: Path) -> None:
    made = Committed(tmp_path)
    made.commit(NOON)
    assert expire_tags(made.store).tags == ()
    written = int((made.table.root / "tag" / "tag-2026-02-28").stat().st_mtime * 1000)
    assert expire_tags(made.store, written - 1000).tags == ()
    assert expire_tags(made.store, written + 1000, dry_run=True).tags == ("2026-02-28",)
    assert expire_tags(made.store, written + 1000).tags == ("2026-02-28",) and made.tags == {}


def test_each_write_is_followed_by_its_tag(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table(
        "db.t",
        "id INT NOT NULL, v STRING",
        primary_key=["id"],
        options={"bucket": "1", "tag.automatic-creation": "batch", "tag.batch.customized-name": "now"},
    )
    for number in (1, 2):
        table.write(rows((number, "v")))
        assert [(tag.name, tag.snapshot_id) for tag in table.tags.list()] == [("now", number)]


def test_a_commit_checks_some_of_many_tags_and_finally_all_expired_tags_are_deleted(tmp_path: Path) -> None:
    made = Committed(tmp_path)
    made.commit(NOON, follow=False)
    chances = iter([number / 10 for number in range(10)] * 9)
    around = Environment(clock=lambda: millis(NOON), local_offset=lambda seconds: 0, chance=lambda: next(chances))
    store = made.store
    for number in range(50):
        create_tag(store, f"t{number}", store.snapshots.get(1), time_retained=60.0, environment=around)
    later = Environment(
        clock=lambda: millis(NOON + DAY), local_offset=lambda seconds: 0, chance=lambda: next(chances)
    )
    left = []
    for _ in range(5):
        expire_after_commit(store, later)
        left.append(len(made.tags))
    assert left == [34, 18, 2, 0, 0]


def test_a_tag_of_the_last_day_of_the_calendar_ends_automatic_tags_and_fails_no_commit(tmp_path: Path) -> None:
    made = Committed(tmp_path)
    made.commit(NOON)
    create_tag(made.store, "9999-12-31", made.store.snapshots.get(1))
    made.commit(NOON + 3 * DAY)
    assert list(made.tags) == ["2026-02-28", "9999-12-31"]


@pytest.mark.parametrize("watermark", [datetime(1, 1, 1), datetime(1, 1, 3), datetime(9999, 12, 31, 23)], ids=str)
def test_a_watermark_at_an_end_of_the_calendar_has_no_tag(tmp_path: Path, watermark: datetime) -> None:
    made = Committed(tmp_path, tag__automatic_creation="watermark", sink__watermark_time_zone="GMT+14:00")
    made.commit(NOON, watermark=watermark)
    assert made.tags == {}
