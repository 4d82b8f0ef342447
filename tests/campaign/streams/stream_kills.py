"""Streams are killed at every step of a micro-batch and restarted; their tables must show each change exactly once."""

from __future__ import annotations

import random
import shutil
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.campaign.locations import Warehouse
from tests.campaign.processes import CampaignError, done_by
from tests.campaign.streams.inputs import KEYS, Changes, Files, Input, Sums
from tests.campaign.streams.queries import DATA_SOURCE, INPUT, NATIVE, SUMS, SUMS_OPTIONS, Query
from tests.campaign.streams.sessions import StreamSession
from tests.campaign.streams.steps import DRIVER, EXECUTOR, ITSELF, JVM, SINK, SOURCE, TASK, Order
from tests.campaign.streams.stream_audit import audit_files, audit_mirror, audit_sums, since

#: Kills of one stream.
ROUNDS = 20
#: Copies of one checkpoint.
_OLD = 2
#: The share of kills whose victim is the JVM: each costs a start of a JVM.
JVM_SHARE = 0.08

_FILES = [f"{when} {what}" for what in ("manifest", "manifest list", "snapshot", "hint") for when in ("before", "after")]
_COMMIT = [*_FILES, "before snapshot", "after snapshot", "after snapshot"]
_TASK_FILES = ["before data file", "after data file"]
#: The steps of each process, by the kind of the sink or source.
STEPS = {
    NATIVE: [(DRIVER, step) for step in ("before batch", "after batch", "after batch", *_COMMIT)]
    + [(TASK, step) for step in _TASK_FILES],
    DATA_SOURCE: [(SINK, step) for step in ("before commit", "after commit", "after commit", *_COMMIT)]
    + [(TASK, step) for step in ("before write", "in write", "after write", *_TASK_FILES)],
    "table": [
        (SOURCE, f"{when} {call}")
        for call in ("initialOffset", "latestOffset", "partitions", "commit", "consumer")
        for when in ("before", "after")
    ]
    + [(TASK, step) for step in ("before read", "in read", "after read")],
    "files": [],
}
#: What the check of a table may find after kills: they leave manifests, and a hint until the next commit.
_LEFT = {"manifest-stray": 1, "stale-hint": 1}
#: An error with this text is not that of a killed process.
_OWN_ERROR = "lakelsm.errors."
_TARGETS = (
    {"bucket": "2"},
    {"bucket": "2", "num-sorted-run.compaction-trigger": "2", "changelog-producer": "lookup"},
    {"bucket": "-1", "dynamic-bucket.target-row-num": "10"},
    {"bucket": "1", "write-only": "true"},
)
_SOURCES = (
    {"bucket": "2", "changelog-producer": "input"},
    {"bucket": "1"},
    {"bucket": "2", "changelog-producer": "lookup"},
)


@dataclass
class StreamTally:
    """Counts of kills by step, of orders whose step was not reached, and of tasks that Spark repeated."""

    kills: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    orphans: int = 0
    #: Restarts from copies of the checkpoint.
    old: int = 0


@dataclass
class StreamLife:
    """A stream with its checkpoint, from its first batch through all kills. ``chance`` decides everything."""

    session: StreamSession
    where: Warehouse
    query: Query
    input: Input
    chance: random.Random
    tally: StreamTally
    victims: tuple[str, ...] = (ITSELF, JVM)
    has_started: bool = False
    #: Copies of the checkpoint, with the rows that the table had then.
    old: list[tuple[str, Sums]] = field(default_factory=list)

    @staticmethod
    def create(
        session: StreamSession, where: Warehouse, folder: Path, seed: int, tally: StreamTally, kinds: tuple[str, str]
    ) -> StreamLife:
        """Create the tables of a stream; ``kinds`` are its source ('files' or 'table') and its sink."""
        chance = random.Random(seed)
        source, sink = kinds
        mirror = source == "table" and chance.random() < 0.3
        folder = folder / f"stream-{seed}"
        folder.mkdir()
        options = dict(chance.choice(_TARGETS))
        target = (
            where.create(f"target{seed}", INPUT, primary_key=["k"], options=options)
            if mirror
            else where.create(f"target{seed}", SUMS, primary_key=["k"], options={**SUMS_OPTIONS, **options})
        )
        given: Input
        if source == "files":
            (folder / "input").mkdir()
            given = Files(chance, folder=folder / "input")
        else:
            of_source = dict(_SOURCES[0] if mirror else chance.choice(_SOURCES))
            table = where.create(f"source{seed}", INPUT, primary_key=["k"], options=of_source)
            given = Changes(chance, location=table)
        query = Query(
            given.source, target, sink, str(folder / "checkpoint"),
            read_options=_read_options(chance, mirror) if source == "table" else {}, is_mirror=mirror,
        )
        return StreamLife(session, where, query, given, chance, tally)

    def round(self) -> None:
        """Add input, run the stream with one kill, and check its table. In most rounds it then runs to the end."""
        if not self.has_started or self.chance.random() < 0.8:
            self.add(self.chance.randint(1, 3))
        self.killed(self.order())
        self.audit(complete=False)
        if not self.has_started or self.chance.random() < 0.35:
            self.finished()

    def add(self, batches: int) -> None:
        """Add input; a stream that has not started will read the rows of its table."""
        self.input.add(batches)
        if isinstance(self.input, Changes):
            if not self.has_started:
                self.input.start()
            elif self.query.is_mirror and self.chance.random() < 0.7:
                self.input.delete(self.chance.sample(range(KEYS), 5))

    def order(self) -> Order:
        """Return a random kill at a step that the stream may come to."""
        source = "files" if isinstance(self.query.source, str) else "table"
        steps = STEPS[self.query.sink] + STEPS[source]
        if EXECUTOR in self.victims:
            steps = [(role, step) for role, step in steps if role == TASK]
        unreached = {"initialOffset"} if self.has_started else set()
        unreached |= {"consumer"} - {name.removesuffix("-id") for name in self.query.read_options}
        role, step = self.chance.choice([each for each in steps if each[1].partition(" ")[2] not in unreached])
        victim = self.chance.choices(self.victims, [1 - JVM_SHARE, JVM_SHARE][: len(self.victims)])[0]
        kills = self.chance.choice((1, 4)) if role == TASK and victim == ITSELF else 1
        return Order(role, step, self.chance.choice((1, 1, 1, 2, 3)), victim, kills)

    def killed(self, order: Order) -> None:
        """Run the stream, with a kill if it comes to the step."""
        error = self.session.run(self.query, order)
        kills = self.session.orders.kills()
        if error and (not kills or _OWN_ERROR in error):
            raise CampaignError(f"{order.name}: {error}")
        (self.tally.kills if kills else self.tally.late)[order.name] += kills or 1
        if kills:
            self.tally.ends["repeated by Spark" if not error else error.partition(":")[0]] += 1

    def finished(self) -> None:
        """Run the stream to the end of its input."""
        self._run(self.query)
        self.has_started = True
        self.audit(complete=True)
        if len(self.old) < _OLD and self.chance.random() < 0.3:
            copy = f"{self.query.checkpoint}-{len(self.old)}"
            shutil.copytree(self.query.checkpoint, copy)
            self.old.append((copy, dict(self.input.sums)))

    def audit(self, complete: bool) -> None:
        """Check the table."""
        if self.query.is_mirror:
            done_by(audit_mirror, self.query.target, self.query.source, complete)
        else:
            done_by(audit_sums, self.query.target, self.input.sums, complete)

    def restarted_from(self, checkpoint: str, before: Sums) -> None:
        """Restart the stream from an old checkpoint: into its table, which must not change, and into an empty one."""
        if not self.query.is_mirror:
            empty = self.where.create(
                f"{Path(self.query.target.uri).name}_{Path(checkpoint).name.replace('-', '_')}", SUMS, primary_key=["k"],
                options={**SUMS_OPTIONS, "bucket": "2"},
            )
            again = f"{checkpoint}-again"
            shutil.copytree(checkpoint, again)
            self._run(replace(self.query, checkpoint=again, target=empty))
            done_by(audit_sums, empty, since(before, self.input.sums), True)
        self.query = replace(self.query, checkpoint=checkpoint)
        self.finished()
        self.input.add(1)
        self.finished()
        self.tally.old += 1

    def _run(self, query: Query) -> None:
        error = self.session.run(query)
        if error:
            raise CampaignError(f"a restart ended with {error}")

    def ended(self) -> None:
        """Finish the stream, restart it from old checkpoints, and check all files of its table."""
        self.finished()
        for checkpoint, before in list(self.old):
            self.restarted_from(checkpoint, before)
        self.session.await_others()
        self.tally.orphans += done_by(audit_files, self.query.target, _LEFT)


def _read_options(chance: random.Random, mirror: bool) -> dict[str, str]:
    # With one file in a batch, a restart from an old checkpoint makes the same batches again.
    options = {"read.stream.maxFilesPerTrigger": "1"}
    if chance.random() < 0.5:
        options["consumer-id"] = "campaign"
    return {**options, "read.changelog": "true"} if mirror else options


def stream_life(
    session: StreamSession, where: Warehouse, folder: Path, seed: int, tally: StreamTally, *,
    kinds: tuple[str, str], rounds: int = ROUNDS, victims: tuple[str, ...] = (ITSELF, JVM),
) -> bool:
    """Run the kills of one stream; return False if a guarantee was broken."""
    before = tally.kills.total()
    try:
        life = StreamLife.create(session, where, folder, seed, tally, kinds)
        life.victims = victims
        for _ in range(rounds):
            life.round()
        life.ended()
        return True
    except Exception:  # noqa: BLE001 - any failure is reported, and the other streams continue
        traceback.print_exc()
        session.stop()
        print(f"seed {seed} ({kinds}) failed, at {where.warehouse} and {folder}/stream-{seed}", flush=True)
        return False
    finally:
        print(f"seed {seed}: {kinds[0]} to {kinds[1]}, {tally.kills.total() - before} kills", flush=True)

