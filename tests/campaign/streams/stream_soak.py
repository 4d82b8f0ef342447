"""Two streams into one table, and one out of it into a second table, while compaction, expiry and a schema change run.

At the end the first table has the last row of each key of both streams, and the second table equals the first.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelsm import Catalog
from lakelsm.errors import CommitConflictError, StreamSchemaChangedError
from lakelsm.schema_changes import AddColumn
from tests.campaign.locations import TableLocation, Warehouse
from tests.campaign.processes import CampaignError, Child, Voice, descendants, done_by
from tests.campaign.streams.queries import DATA_SOURCE, NATIVE, started
from tests.campaign.streams.sessions import StreamSession
from tests.campaign.streams.stream_audit import audit_files, check_batches, commits_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "w INT, k BIGINT, v BIGINT"
#: A stream writes keys from 0 to here in turns; each `DELETED`-th change deletes its key.
KEYS, DELETED = 500, 7
ROWS_PER_SECOND = 200
_RETAINED = 10
#: Snapshots that are left at the end, on a busy machine.
_MAX_SNAPSHOTS = 500
#: Seconds between kills of a Python worker.
_KILL_SECONDS = 30.0
#: The error of a stream whose table has other columns.
_CHANGED = StreamSchemaChangedError.__name__
_OWN_ERROR = "lakelsm.errors."


@dataclass(frozen=True)
class SoakStreams:
    """The streams of a soak, which run for a time in one driver."""

    where: Warehouse
    first: TableLocation
    second: TableLocation
    folder: Path
    seconds: float
    jvm: int
    seed: int

    def run(self, spark: SparkSession) -> str:
        """Run the streams to the end of their time. Returns the counts as text; raises CampaignError."""
        return _Running(self, spark).run()


@dataclass
class _Running:
    given: SoakStreams
    spark: SparkSession
    counts: Counter[str] = field(default_factory=Counter)
    queries: dict[str, Any] = field(default_factory=dict)
    is_changed: bool = False
    is_copy_changed: bool = False
    is_disturbed: bool = False

    def run(self) -> str:
        begun, chance = time.monotonic(), random.Random(self.given.seed)
        killed = begun
        for name in ("rates 0", "rates 1", "copy"):
            self._start(name)
        while (now := time.monotonic()) < begun + self.given.seconds:
            time.sleep(0.5)
            self._restart_ended()
            if not self.is_changed and now > begun + self.given.seconds / 2:
                self._change_columns()
            if now - killed > _KILL_SECONDS:
                killed, self.is_disturbed = now, self._kill(chance)
        for name in ("rates 0", "rates 1"):
            self._stop(name)
        _compacted(self.given.first, full=True)
        self._drain("copy")
        return ", ".join(f"{what} {count}" for what, count in sorted(self.counts.items()))

    def _start(self, name: str) -> None:
        rows = self._copied() if name == "copy" else self._rates(int(name[-1]))
        target = self.given.second if name == "copy" else self.given.first
        sink = DATA_SOURCE if name == "rates 1" else NATIVE
        writer = rows.writeStream.option("checkpointLocation", str(self.given.folder / f"checkpoint-{name[-1]}"))
        writer = writer.trigger(processingTime="500 milliseconds").queryName(name.replace(" ", "_"))
        compact_every = 5 if name == "copy" else None  # The first table is `write-only`.
        self.queries[name] = started(
            self.spark, writer, target, sink, row_kind="rowkind", compact_every=compact_every, name="lakelsm"
        )

    def _rates(self, number: int) -> DataFrame:
        rows = self.spark.readStream.format("rate").option("rowsPerSecond", ROWS_PER_SECOND).option("numPartitions", 1)
        kind = f"CASE WHEN value % {DELETED} = 0 THEN '-D' ELSE '+I' END AS rowkind"
        note = ["CAST(value AS STRING) AS note"] if self.is_changed else []
        return rows.load().selectExpr(
            f"{number} AS w", f"value % {KEYS} AS k", "value AS v", *note, kind
        )

    def _copied(self) -> DataFrame:
        reader = self.spark.readStream.format("lakelsm").options(**self.given.first.options)
        return reader.options(**{"consumer-id": "soak", "read.changelog": "true"}).load(self.given.first.uri)

    def _restart_ended(self) -> None:
        for name, query in list(self.queries.items()):
            if query.isActive:
                continue
            text = str(query.exception() or "")
            if _CHANGED in text and self.is_changed and not self.is_copy_changed:
                self._add_column("second")
                self.is_copy_changed = True
                self.counts["restarts for columns"] += 1
            elif _OWN_ERROR in text or not self.is_disturbed:
                raise CampaignError(f"stream {name} ended with {text}")
            else:
                self.counts["restarts after kills"] += 1
            self._start(name)

    def _change_columns(self) -> None:
        """Add a column to the table. The writing streams are restarted with it; the copy ends with an error."""
        for name in ("rates 0", "rates 1"):
            self._stop(name)
        self._add_column("first")
        self.is_changed = True
        for name in ("rates 0", "rates 1"):
            self._start(name)

    def _add_column(self, table: str) -> None:
        where = self.given.where
        catalog = Catalog(where.warehouse, storage_options=where.options or None)
        catalog.alter_table(f"db.{table}", AddColumn("note", "STRING"))

    def _stop(self, name: str) -> None:
        self.queries.pop(name).stop()

    def _drain(self, name: str) -> None:
        for _ in range(3):
            with suppress(Exception):
                self.queries[name].processAllAvailable()
            if self.queries[name].isActive:
                return
            self._restart_ended()
        raise CampaignError("the copy does not come to its end")

    def _kill(self, chance: random.Random) -> bool:
        workers = [pid for pid, name in descendants(self.given.jvm).items() if name.startswith("python")]
        if workers:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
            self.counts["workers killed"] += 1
        return bool(workers)


def compact(say: Voice, location: TableLocation) -> None:
    """Compact a table which the streams do not compact, until the parent says stop; then report counts."""
    counts: Counter[str] = Counter()
    while not say.pipe.poll(1):
        counts[f"compactions {_compacted(location, full=False)}"] += 1
    say("counted", counts)


def _compacted(location: TableLocation, full: bool) -> str:
    try:
        return location.opened().compact(full=full, engine="local").status
    except CommitConflictError:
        return "conflict"


def expire(say: Voice, location: TableLocation) -> None:
    """Expire snapshots until the parent says stop; keep only a few, and those that the consumer has not read."""
    table, counts = location.opened(), Counter[str]()
    while not say.pipe.poll(1):
        result = table.maintenance.expire_snapshots(retain_last=_RETAINED)
        counts.update({"snapshots expired": result.snapshots, "files not deleted": len(result.failures)})
    say("counted", counts)


def soaked_streams(where: Warehouse, folder: Path, seconds: float, seed: int, producer: str = "input") -> str:
    """Run the streams. Returns a text with counts; raises CampaignError for a broken guarantee."""
    options = {"bucket": "2", "changelog-producer": producer, "write-only": "true"}
    first = where.create("first", COLUMNS, primary_key=["w", "k"], options=options)
    second = where.create("second", COLUMNS, primary_key=["w", "k"], options={"bucket": "2"})
    session = StreamSession(folder / "spark", name="soak")
    counts: Counter[str] = Counter()
    works: dict[str, tuple[Callable[..., None], TableLocation]] = {
        "compactor": (compact, first), "expiry": (expire, first), "expiry of the copy": (expire, second),
    }
    children: dict[str, Child] = {}
    try:
        jvm = session.started_jvm()
        children = {name: Child.of(work, location) for name, (work, location) in works.items()}
        text = session.run(SoakStreams(where, first, second, folder, seconds, jvm, seed), patience=seconds + 300)
    finally:
        for child in children.values():
            with suppress(BrokenPipeError):
                child.pipe.send("stop")
        for name, child in children.items():
            for word, value in child.all_heard():
                if word == "raised":
                    raise CampaignError(f"{name}: {value}")
                counts.update(value)
        session.stop()
    if text.startswith("error:"):
        raise CampaignError(text)
    rows = done_by(conclude, first, second)
    return f"{text}, {', '.join(f'{what} {count}' for what, count in sorted(counts.items()))}; {rows} rows"


def conclude(say: Voice, first: TableLocation, second: TableLocation) -> None:
    """Compare both tables, and the first one with its streams."""
    here, there = (_rows(location) for location in (first, second))
    check_copy(here, there)
    for writer in (0, 1):
        check_rates({k: v for (w, k), (v, *_) in here.items() if w == writer})
    for location in (first, second):
        check_batches(commits_of(location))
        if (count := len(location.store().snapshots.ids())) > _MAX_SNAPSHOTS:
            raise CampaignError(f"expiry does not keep up: {count} snapshots are left")
        done_by(audit_files, location, {"manifest-stray": 1, "stale-hint": 1})
    say("result", len(here))


def check_copy(first: dict[Any, Any], second: dict[Any, Any]) -> None:
    """Raise CampaignError if a copy differs from its table."""
    if first != second:
        raise CampaignError(f"the copy differs: {sorted(first.items() ^ second.items(), key=str)[:6]}")


def check_rates(found: dict[int, int]) -> None:
    """Raise CampaignError unless the rows are those of a stream of numbers that ended at some number."""
    newest = max(found.values(), default=0)
    for end in range(newest, newest + 2):  # The last change may be a delete.
        last = {value % KEYS: value for value in range(max(0, end - KEYS + 1), end + 1)}
        if found == {key: value for key, value in last.items() if value % DELETED}:
            return
    raise CampaignError(f"the rows are not those of a stream up to {newest}: {sorted(found.items())[:6]}")


def _rows(location: TableLocation) -> dict[tuple[int, int], tuple[Any, ...]]:
    found = location.opened().to_arrow(fresh=True).to_pylist()
    rows = {(row["w"], row["k"]): tuple(row[name] for name in row if name not in ("w", "k")) for row in found}
    if len(rows) != len(found):
        raise CampaignError("a key has several rows")
    return rows
