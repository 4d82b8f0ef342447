"""Many processes work on one table for a while: writers, a compactor, expiry, tags, orphan removal and readers.

Batch ``n`` of a writer writes a new row, deletes the row of a much older batch, and adds one to the writer's
count, all in one commit. So each read must return, for each writer, the rows of the newest batches without a gap, and
their number as the count: every read detects a lost, repeated, partial or restored batch. Another writer overwrites a
partition, whose rows must all be of one batch. Writers are killed from time to time, and continue with the batch that
was not acknowledged.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pyarrow as pa

from lakelsm import Table
from lakelsm.errors import CommitConflictError, CorruptTableError, SnapshotNotFoundError
from tests.campaign.locations import TableLocation, Warehouse
from tests.campaign.processes import CampaignError, Child, Voice, done_by
from tests.maintain.orphans.table_census import stored, unnamed_of

UPSERTING = (0, 1, 2)
OVERWRITING = 3
#: A batch deletes the row of the batch this many batches before.
WINDOW = 100
#: Rows of a batch of the writer that overwrites its partition.
REPLACED = 20
#: Longer than any commit here, on a busy machine.
ORPHAN_AGE = "60 s"
#: Records of compactions that fill the history, which each snapshot carries: 8 KB.
HISTORY = 80
#: Seconds until orphans are old enough, so that they are removed as fast as they appear.
_WARM_UP = 120.0
#: Measured values vary with compactions: a table counts as growing if its last third is larger by this factor.
_GROWTH = 1.25
_RETAINED = 30
_COUNT = -1
_COLUMNS = "p STRING, w INT, k BIGINT, n BIGINT, total BIGINT"
_OPTIONS = {
    "bucket": "2",
    "write-only": "true",
    "merge-engine": "aggregation",
    "fields.n.aggregate-function": "last_value",
    "fields.total.aggregate-function": "sum",
    "aggregation.remove-record-on-delete": "true",
}


def soaked(location: Warehouse, minutes: float, seed: int) -> Report:
    """Run the campaign. Raises CampaignError for a broken guarantee."""
    table = location.create("soak", _COLUMNS, primary_key=["p", "w", "k"], partition_by=["p"], options=_OPTIONS)
    return _Soak(table, time.monotonic() + 60 * minutes, random.Random(seed)).run()


@dataclass
class Report:
    """``sizes``: seconds since the start, files and bytes; ``steady``: the second after which they must not grow."""

    counts: Counter[str] = field(default_factory=Counter)
    sizes: list[tuple[float, int, int]] = field(default_factory=list)
    steady: float | None = None
    parts: str = ""

    def check_sizes(self) -> str:
        """Compare the first and the last third of the sizes in the steady time; return a text with both.

        Raises CampaignError if the table has grown.
        """
        steady = [each for each in self.sizes if self.steady is not None and each[0] > self.steady]
        third = len(steady) // 3
        if third < 3:
            return "too short to decide whether the size is bounded"
        parts = []
        for what, values in (("files", [each[1] for each in steady]), ("bytes", [each[2] for each in steady])):
            before, after = median(values[:third]), median(values[-third:])
            parts.append(f"{what} {before:.0f} then {after:.0f}")
            if after > _GROWTH * before:
                raise CampaignError(f"the table grows: {', '.join(parts)} (medians from {self.steady:.0f} s on)")
        return f"bounded from {self.steady:.0f} s on (medians of the first and last third: {', '.join(parts)})"


# -- processes ---------------------------------------------------------------------------------------------------------


def write(say: Voice, location: TableLocation, writer: int, first: int) -> None:
    """Write batches from ``first`` on; repeat each until it is committed."""
    table = location.opened()
    n = first
    while not say.pipe.poll():
        try:
            result = _batch(table, writer, n)
        except CommitConflictError:
            say("conflict")
            continue
        say("acknowledged", (n, result.snapshot_id))
        n += 1


def write_first(say: Voice, location: TableLocation, writer: int) -> None:
    """Write the first batch, without concurrent writers."""
    say("result", _batch(location.opened(), writer, 1).snapshot_id)


def _batch(table: Table, writer: int, n: int) -> Any:
    named: dict[str, Any] = {"commit_user": f"writer-{writer}", "batch_id": n}
    if writer == OVERWRITING:
        rows = [("o", writer, key, n, 1, "+I") for key in range(n, n + REPLACED)]
        return table.overwrite(_frame(rows).drop_columns(["kind"]), {"p": "o"}, **named)
    rows = [("u", writer, n, n, 1, "+I"), ("u", writer, _COUNT, n, 1, "+I")]
    if n > WINDOW:
        rows.append(("u", writer, n - WINDOW, n, 1, "-D"))
    return table.write(_frame(rows), "kind", **named)


def _frame(rows: list[tuple[Any, ...]]) -> pa.Table:
    p, w, k, n, total, kind = zip(*rows)
    big = pa.int64()
    columns = {"p": pa.array(p), "w": pa.array(w, pa.int32()), "k": pa.array(k, big), "n": pa.array(n, big)}
    return pa.table({**columns, "total": pa.array(total, big), "kind": pa.array(kind)})


def compact(say: Voice, location: TableLocation) -> None:
    """Run ordinary compactions, and sometimes a full one."""
    table, runs = location.opened(), 0
    while not say.pipe.poll(0.5):
        runs += 1
        result = table.compact(full=runs % 10 == 0, engine="local")
        say("counted", {f"compactions {result.status}": 1})


def expire(say: Voice, location: TableLocation) -> None:
    """Expire snapshots; keep only a few."""
    table = location.opened()
    while not say.pipe.poll(1):
        result = table.maintenance.expire_snapshots(retain_last=_RETAINED)
        say("counted", {"snapshots expired": result.snapshots, "files not deleted": len(result.failures)})


def tag(say: Voice, location: TableLocation) -> None:
    """Keep at most three tags; each new tag is on the newest snapshot."""
    table, number = location.opened(), 0
    while not say.pipe.poll(2):
        names = [each.name for each in table.tags.list()]
        if len(names) >= 3:
            try:
                say("counted", {"tags deleted": 1, "files not deleted": len(table.tags.delete(names[0]).failures)})
            except CorruptTableError:  # The snapshot expired during the check: counted, and retried.
                say("counted", {"deletions of tags that met an expiry": 1})
                continue
        try:
            number += 1
            table.tags.create(f"tag-{number}")
            say("counted", {"tags created": 1})
        except SnapshotNotFoundError:
            say("counted", {"tags of an expired snapshot": 1})


def remove_orphans(say: Voice, location: TableLocation) -> None:
    """Remove the files of killed writers."""
    table = location.opened()
    while not say.pipe.poll(10):
        result = table.maintenance.remove_orphans(ORPHAN_AGE, force=True, engine="local")
        say("counted", {"orphans removed": result.files, "files not deleted": len(result.failures)})


def read(say: Voice, location: TableLocation, seed: int) -> None:
    """Read the newest rows, or those of a snapshot or tag, which may be refused only if it has expired."""
    table, store, chance = location.opened(), location.store(), random.Random(seed)
    while not say.pipe.poll(0.2):
        travel: dict[str, Any] = {}
        newest = store.snapshots.latest_id() or 1
        if chance.random() < 0.5:
            tags, ids = store.tags.names(), store.snapshots.ids()
            by_tag = tags and chance.random() < 0.4
            travel = {"tag": chance.choice(tags)} if by_tag else {"snapshot": chance.choice(ids)}
        try:
            found = table.at(**travel).to_arrow() if travel else table.to_arrow()
        except SnapshotNotFoundError:  # The only error for an expired state.
            if not _has_expired(location, travel or {"snapshot": newest}):
                raise
            say("counted", {"reads of expired states": 1})
            continue
        counts(found)
        say("counted", {f"reads of {next(iter(travel), 'the newest')}": 1})


def _has_expired(location: TableLocation, travel: dict[str, Any]) -> bool:
    """Return whether the requested state has expired or its expiry is announced; the newest id must not decrease."""
    store = location.store()
    if "tag" in travel:
        return store.tags.try_get(travel["tag"]) is None
    snapshot_id = travel["snapshot"]
    return store.snapshots.try_get(snapshot_id) is None or store.snapshots.is_expiring(snapshot_id)


def counts(found: pa.Table) -> dict[int, int]:
    """Return the number of batches of each writer. Raises CampaignError if the rows are not whole batches."""
    by_writer: dict[int, dict[int, tuple[int, int]]] = {}
    for row in found.to_pylist():
        by_writer.setdefault(row["w"], {})[row["k"]] = row["n"], row["total"]
    totals = {}
    for writer, rows in by_writer.items():
        if writer == OVERWRITING:
            n = min(rows)
            expected = dict.fromkeys(range(n, n + REPLACED), (n, 1))
        else:
            n = rows.get(_COUNT, (0, 0))[0]
            expected = {key: (key, 1) for key in range(max(1, n - WINDOW + 1), n + 1)} | {_COUNT: (n, n)}
        if rows != expected:
            raise CampaignError(f"writer {writer} at {n}: {sorted(rows.items() ^ expected.items())[:6]}")
        totals[writer] = n
    if len(found) != sum(map(len, by_writer.values())):
        raise CampaignError("a key has several rows")
    return totals


# -- the campaign ------------------------------------------------------------------------------------------------------


class _Soak:
    """Runs the processes, and handles their reports."""

    def __init__(self, location: TableLocation, end: float, chance: random.Random) -> None:
        self._location, self._started, self._end, self._chance = location, time.monotonic(), end, chance
        self._report = Report()
        self._batches = dict.fromkeys((*UPSERTING, OVERWRITING), 0)
        self._children: dict[str, Child] = {}
        self._last_kill = self._last_size = self._started

    def run(self) -> Report:
        for writer in self._batches:  # A new user's replay check reads all snapshots, which takes longer than a commit.
            done_by(write_first, self._location, writer)
            self._batches[writer] = 1
        for writer in self._batches:
            self._start_writer(writer)
        works: dict[str, Callable[..., None]] = {
            "compactor": compact, "expiry": expire, "tags": tag, "orphans": remove_orphans
        }
        for name, work in works.items():
            self._children[name] = Child.of(work, self._location)
        for seed in (1, 2):
            self._children[f"reader-{seed}"] = Child.of(read, self._location, seed)
        try:
            while time.monotonic() < self._end:
                self._hear()
                self._kill_now_and_then()
                self._size_now_and_then()
        finally:
            self._stop()
        bounded = self._report.check_sizes()
        self._report.summary = f"{done_by(conclude, self._location, self._batches)}; {bounded}"
        return self._report

    def _start_writer(self, writer: int) -> None:
        self._children[f"writer-{writer}"] = Child.of(write, self._location, writer, self._batches[writer] + 1)

    def _hear(self) -> None:
        for name, child in list(self._children.items()):
            while child.says_within(0):
                self._take(name, child.heard())
        time.sleep(0.05)

    def _take(self, name: str, heard: tuple[str, Any] | None) -> None:
        if heard is None:
            raise CampaignError(f"{name} ended")
        word, value = heard
        if word == "raised":
            raise CampaignError(f"{name}: {value}")
        if word == "acknowledged":
            writer = int(name.removeprefix("writer-"))
            if value[0] != self._batches[writer] + 1:
                raise CampaignError(f"{name} acknowledged {value[0]} after {self._batches[writer]}")
            self._batches[writer] = value[0]
            self._report.counts["commits"] += 1
        else:
            self._report.counts.update(value or {word: 1})

    def _kill_now_and_then(self) -> None:
        if time.monotonic() - self._last_kill < 15:
            return
        self._last_kill = time.monotonic()
        writer = self._chance.choice(sorted(self._batches))
        child = self._children[f"writer-{writer}"]
        child.kill()
        for heard in child.all_heard():
            self._take(f"writer-{writer}", heard)
        self._report.counts["writers killed"] += 1
        self._start_writer(writer)

    def _size_now_and_then(self) -> None:
        if time.monotonic() - self._last_size < 10:
            return
        self._last_size = time.monotonic()
        files, size = done_by(measure, self._location)
        seconds = self._last_size - self._started
        self._report.sizes.append((seconds, files, size))
        full = min(self._batches[writer] for writer in UPSERTING) > WINDOW
        if full and seconds > _WARM_UP and self._report.counts["compactions done"] > HISTORY:
            self._report.steady = self._report.steady or seconds
        print(f"{seconds:.0f} s: {dict(self._report.counts)}, {files} files, {size} bytes", flush=True)

    def _stop(self) -> None:
        for child in self._children.values():
            with suppress(BrokenPipeError):  # The process has ended, and has reported why.
                child.pipe.send("stop")
        for name, child in self._children.items():
            for heard in child.all_heard():
                self._take(name, heard)


def measure(say: Voice, location: TableLocation) -> None:
    """Report the number of files and the bytes of the table."""
    store = location.store()
    waiting, files, size = [store.paths.root], 0, 0
    while waiting:
        folder = waiting.pop()
        for entry in store.file_io.entries(folder):
            if entry.is_directory:
                waiting.append(f"{folder}/{entry.name}")
            else:
                files, size = files + 1, size + entry.size
    say("result", (files, size))


def conclude(say: Voice, location: TableLocation, batches: dict[int, int]) -> None:
    """Check that no batch is lost or repeated, that all states can be read, and that check and removal find nothing."""
    table, store = location.opened(), location.store()
    found = counts(table.to_arrow())
    for writer, n in batches.items():
        if found[writer] not in (n, n + 1):  # One more: committed, but killed before its report.
            raise CampaignError(f"{n} batches of writer {writer} were acknowledged, and {found[writer]} are there")
    for snapshot_id in store.snapshots.ids():
        counts(table.at(snapshot=snapshot_id).to_arrow())
    for name in store.tags.names():
        counts(table.at(tag=name).to_arrow())
    check = table.maintenance.check(data="full", engine="local")
    if {finding.rule for finding in check.findings} - {"manifest-stray"}:  # Manifests of killed commits.
        raise CampaignError(check.as_text())
    removed = table.maintenance.remove_orphans(0, force=True, engine="local")
    left = unnamed_of(store, stored(store))
    if removed.failures or left:
        raise CampaignError(f"left: {sorted(left)[:10]}, {removed.failures}")
    if table.maintenance.check(data="none", engine="local").findings:
        raise CampaignError("a check finds strays where orphan removal found none")
    counts(table.to_arrow())
    ids = store.snapshots.ids()
    say("result", f"{sum(found.values())} batches, {len(ids)} snapshots, {removed.files} orphans at the end")
