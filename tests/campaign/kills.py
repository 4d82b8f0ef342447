"""Processes are killed at random moments of their work on a table; all guarantees must hold after each kill."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.campaign.actions import COLUMNS, Action, act
from tests.campaign.audit import audit, followed
from tests.campaign.ledger import LAYOUTS, Batch, Ledger, State
from tests.campaign.locations import TableLocation, Warehouse
from tests.campaign.processes import CampaignError, Child, done_by
from tests.campaign.spark_driver import JVM, SparkDriver
from tests.campaign.spark_driver import KINDS as SPARK_KINDS

#: The actions that are killed, and their weights.
KINDS = {
    "write": 8,
    "compact": 5,
    "expire": 4,
    "rollback": 4,
    "orphans": 3,
    "create_tag": 1,
    "delete_tag": 2,
    "create_branch": 2,
    "delete_branch": 1,
    "fast_forward": 3,
}
#: Actions that are killed after the publication of a snapshot, before hints, deletions, compaction or expiry.
PUBLISHING = {"write": 3, "compact": 1}
#: Kills of one table.
ROUNDS = 10
#: Seconds for which the server may still run requests of a killed process.
SERVER_SECONDS = 0.3
_MAX_SNAPSHOTS = 12


@dataclass
class Tally:
    """Counts of kills by victim and action, of those that came too ``late``, and of leftovers by kind.

    ``published``: kills between the publication of a snapshot and the end of its operation. ``outcomes``: how actions
    ended whose JVM was killed.
    """

    kills: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    leftovers: Counter[str] = field(default_factory=Counter)
    with_leftovers: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    published: int = 0
    #: Approximate seconds of an action, by kind and location.
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        for name in ("kills", "outcomes", "late", "leftovers", "with_leftovers"):
            getattr(self, name).update(getattr(other, name))
        self.acknowledged += other.acknowledged
        self.published += other.published
        self.seconds |= other.seconds


@dataclass
class Life:
    """A table, from its creation through all kills. ``chance`` decides everything.

    With a ``driver``, the killed actions run under Spark.
    """

    location: TableLocation
    ledger: Ledger
    chance: random.Random
    tally: Tally
    #: The states of the retained snapshots, oldest first. Ids are reused, so the ledger has older states of the same ids.
    states: list[State] = field(default_factory=list)
    number: int = 0
    driver: SparkDriver | None = None

    @property
    def ids(self) -> list[int]:
        return [state.snapshot_id for state in self.states]

    @staticmethod
    def create(warehouse: Warehouse, seed: int, tally: Tally, driver: SparkDriver | None = None) -> Life:
        """Create a table of a random layout, with a few snapshots and a tag."""
        chance = random.Random(seed)
        layout = chance.choice(LAYOUTS)
        options = {**layout.options, "write-only": "true"}
        if chance.random() < 0.6:  # Compactions and expiry follow commits; expiry keeps what the ledger needs.
            options |= {
                "write-only": "false",
                "num-sorted-run.compaction-trigger": "3",
                "snapshot.num-retained.min": "10",
                "snapshot.num-retained.max": "14",
            }
        table = warehouse.create(
            f"t{seed}", COLUMNS, primary_key=["p", "k"], partition_by=["p"], options=options
        )
        life = Life(table, Ledger(layout), chance, tally, driver=driver)
        # A delete in an empty table makes no snapshot.
        life.does(Action("write", (life.batch("upsert"), *life.batches(2))))
        life.does(Action("compact"))
        life.does(life.tagging())
        return life

    def round(self, remove: bool) -> None:
        """Prepare and run one kill, and check all guarantees after it."""
        kinds = KINDS if self.driver is None else SPARK_KINDS
        published = self.driver is None and self.chance.random() < 0.6  # Some kills come too late.
        if published:
            kinds = PUBLISHING
        kind = self.chance.choices(list(kinds), list(kinds.values()))[0]
        action = self.prepared(kind)
        self.begins(action)
        if self.killed(action, published) if self.driver is None else self.killed_on_spark(action, self.driver):
            self.audited(remove=False, count=kind)
        self.finished(action)
        if kind == "write":
            self.does(Action("expire_by_options"))
        self.audited(remove)

    def finished(self, action: Action) -> None:
        """Finish an action by running it again without a kill; a committed batch is not written twice.

        A drop has no batch id: a committed one is not repeated, because that would drop later rows.
        """
        before, known = self.ids, self.ledger.latest.batches | self.ledger.required
        left = tuple(batch for batch in action.batches if batch.kind != "drop" or batch.key not in known)
        self.does(replace(action, batches=left), is_started=True)
        if action.kind == "expire":
            earliest = max(before[0], self.ids[-1] - action.retain_last + 1)
            if self.ids[0] != earliest:
                raise CampaignError(f"the oldest snapshot is {self.ids[0]} and not {earliest}")

    # -- actions ---------------------------------------------------------------------------------------------------

    def prepared(self, kind: str) -> Action:
        """Return an action of a kind, after the preparations that give it work."""
        if len(self.ids) > _MAX_SNAPSHOTS:
            self.does(Action("expire", retain_last=6))
        make: dict[str, Callable[[], Action]] = {
            "write": lambda: Action("write", self.batches(self.chance.randint(1, 4))),
            "compact": self.compaction,
            "expire": self.expiry,
            "rollback": self.rollback,
            "orphans": self.removal,
            "create_tag": self.tagging,
            "delete_tag": self.untagging,
            "create_branch": self.branching,
            "delete_branch": self.unbranching,
            "fast_forward": self.forwarding,
        }
        return make[kind]()

    def compaction(self) -> Action:
        self.does(Action("write", self.batches(2)))
        return Action("compact")

    def expiry(self) -> Action:
        self.does(Action("write", self.batches(4)))
        self.does(Action("compact"))
        return Action("expire", retain_last=self.chance.randint(1, 3))

    def rollback(self) -> Action:
        self.does(Action("write", self.batches(2)))
        if self.ledger.tags and self.chance.random() < 0.4:
            return Action("rollback", to=self.chance.choice(sorted(self.ledger.tags)))
        return Action("rollback", to=self.chance.choice(self.ids[:-1]))

    def removal(self) -> Action:
        self.does(Action("plant"))
        return Action("orphans")

    def tagging(self) -> Action:
        return Action("create_tag", tag=self.name("tag"), to=self.chance.choice(self.ids))

    def untagging(self) -> Action:
        """The deletion of a tag whose snapshot has expired, so that files are deleted with it."""
        tagging = Action("create_tag", tag=self.name("tag"), to=self.ids[0])
        self.does(tagging)
        self.does(Action("write", self.batches(2)))
        self.does(Action("compact"))
        self.does(Action("expire", retain_last=1))
        return Action("delete_tag", tag=tagging.tag)

    def branching(self) -> Action:
        for old in sorted(self.ledger.branches):
            self.does(Action("delete_branch", branch=old))
        tagging = self.tagging()
        self.does(tagging)
        return Action("create_branch", branch=self.name("branch"), tag=tagging.tag)

    def unbranching(self) -> Action:
        branching = self.branching()
        self.does(branching)
        self.does(Action("write", self.batches(1), branch=branching.branch))
        return Action("delete_branch", branch=branching.branch)

    def forwarding(self) -> Action:
        branching = self.branching()
        self.does(branching)
        self.does(Action("write", self.batches(2), branch=branching.branch))
        self.does(Action("write", self.batches(1)))
        return Action("fast_forward", branch=branching.branch)

    def name(self, what: str) -> str:
        self.number += 1
        return f"{what}-{self.number}"

    def batches(self, count: int) -> tuple[Batch, ...]:
        return tuple(self.batch() for _ in range(count))

    def batch(self, only: str | None = None) -> Batch:
        self.number += 1
        kinds = ["upsert"] * 6 + ["overwrite", "drop"] + ["delete"] * (2 if not self.ledger.layout.sums else 0)
        kind, partition = only or self.chance.choice(kinds), self.chance.choice("ab")
        if kind == "drop":
            return Batch(f"drop-{self.number}", -1, kind, partition=partition)
        keys = [(p, k) for p in "ab" for k in range(30) if kind != "overwrite" or p == partition]
        chosen = self.chance.sample(keys, self.chance.randint(3, len(keys) // 2))
        rows = tuple((p, k, self.number) for p, k in chosen)
        return Batch("job", self.number, kind, rows, partition)

    # -- execution -------------------------------------------------------------------------------------------------

    def begins(self, action: Action) -> None:
        """Note that the table may be in the state before or after the action."""
        ledger = self.ledger
        if action.kind == "write":
            for batch in action.batches:
                ledger.expect(batch)
        elif action.kind == "rollback":
            ledger.may_become(self.target(action))
        elif action.kind == "fast_forward":
            ledger.may_become(ledger.branches[action.branch])
            ledger.maybe_tags |= set(ledger.tags)
        elif action.kind in ("create_tag", "delete_tag"):
            ledger.maybe_tags.add(action.tag)
        elif action.kind in ("create_branch", "delete_branch"):
            ledger.maybe_branches.add(action.branch)

    def ends(self, action: Action) -> None:
        """Note that the table is in the state after the action."""
        became = None
        if action.kind in ("rollback", "fast_forward"):
            became = self.target(action) if action.kind == "rollback" else self.ledger.branches[action.branch]
            self.ledger.became(became)
        self.ledger, self.states = done_by(followed, self.location, self.ledger)
        ledger = self.ledger
        if became is not None and ledger.latest != became:
            raise CampaignError(f"the table is at {ledger.latest.snapshot_id} and not at {became.snapshot_id}")
        for word, name, found in (("tag", action.tag, ledger.tags), ("branch", action.branch, ledger.branches)):
            if action.kind in (f"create_{word}", f"delete_{word}") and (name in found) != action.kind.startswith("c"):
                raise CampaignError(f"{action.kind} {name}: there are {sorted(found)}")
        ledger.maybe_tags.clear()
        ledger.maybe_branches.clear()

    def target(self, action: Action) -> State:
        if isinstance(action.to, str):
            return self.ledger.tags[action.to]
        return next(state for state in self.states if state.snapshot_id == action.to)

    def does(self, action: Action, is_started: bool = False) -> None:
        """Run an action in a process that is not killed."""
        if not is_started:
            self.begins(action)
        child = Child.of(act, self.location, action)
        words = child.all_heard()
        self.hear(action, words)
        if "done" not in dict(words):
            raise CampaignError(f"{action.kind}: {dict(words).get('raised', 'it ended without a report')}")
        self.ends(action)

    def hear(self, action: Action, words: list[tuple[str, Any]]) -> None:
        for word, value in words:
            if word == "acknowledged":
                key, snapshot_id = value
                if action.branch:
                    self.ledger.tried.discard(key)
                else:
                    self.ledger.acknowledged(key, snapshot_id)
                    self.tally.acknowledged += 1
            elif word == "published" and action.kind == "write" and not action.branch:
                self.ledger.published(*value)

    def killed(self, action: Action, published: bool) -> bool:
        """Start an action in a process and kill it. Return False if it was done before.

        ``published``: kill it only after it has published a snapshot.
        """
        pace = f"{action.kind}{' published' if published else ''} {'local' if self.location.is_local else 'object store'}"
        usual = 0.02 if published else 0.1
        seconds = self.tally.seconds.setdefault(pace, usual if self.location.is_local else 5 * usual)
        child = Child.of(act, self.location, action)
        first = child.heard()
        if first is None or first[0] != "begin":
            raise CampaignError(f"{action.kind}: {first}")
        words, count = [], max(1, len(action.batches))
        if published:
            words = child.heard_until("published", self.chance.randint(1, count))
        time.sleep(self.chance.uniform(0, seconds) * (1 if published else count))
        child.kill()
        words += child.all_heard()
        self.hear(action, words)
        if "raised" in dict(words):
            raise CampaignError(f"{action.kind}: {dict(words)['raised']}")
        if not self.location.is_local:
            time.sleep(SERVER_SECONDS)
        if "done" in dict(words):
            self.tally.late[action.kind] += 1
            self.tally.seconds[pace] = 0.8 * seconds if published else 0.9 * dict(words)["done"] / count
            return False
        ends = [word for word, _ in words if word in ("published", "acknowledged")]
        within = ends[-1:] == ["published"]
        self.tally.kills[f"driver: {action.kind}"] += 1
        self.tally.published += within
        self.tally.seconds[pace] = 0.8 * seconds if published and not within else 1.05 * seconds
        return True

    def killed_on_spark(self, action: Action, driver: SparkDriver) -> bool:
        """Do the same under Spark: the driver, its JVM, or the worker of a task is killed; the task is retried."""
        pace, batches = f"{action.kind} Spark", max(1, len(action.batches))
        seconds = self.tally.seconds.setdefault(pace, 2.0)
        victim, words = driver.killed(self.location, action, seconds * batches, self.chance)
        self.hear(action, words)
        ended = dict(words)
        if "done" in ended:
            self.tally.seconds[pace] = 0.9 * ended["done"] / batches
        if not victim:
            self.tally.late[action.kind] += 1
            return False
        self.tally.kills[f"{victim}: {action.kind}"] += 1
        if victim == JVM:
            self.tally.outcomes[ended.get("refused", "done without the JVM")] += 1
        return True

    def audited(self, remove: bool, count: str = "") -> None:
        """Audit the table. ``count``: the kind of the action that has just been killed."""
        self.ledger, leftovers, self.states = done_by(audit, self.location, self.ledger, remove, not count)
        if count:
            self.tally.leftovers.update(leftovers)
            self.tally.with_leftovers[count] += bool(leftovers)
