"""The scenario of one seed: a table, actors with their actions, and faults. Frozen values, so that it can be shrunk."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from random import Random
from typing import TypeAlias

#: The rows of a batch: (partition, id, kind, v).
Rows: TypeAlias = tuple[tuple[str, int, int, str], ...]

PARTITIONS = ("a", "b")
_HOUR, _DAY = 3_600_000, 86_400_000
#: The kinds of faults. ``lost``: the operation takes effect, but its answer is an error. ``refused``: an error without an
#: effect. ``full``: the store reports that it has no space. ``late``: an error, and the effect comes later. ``kill``: the
#: process ends before the operation, ``kill-after`` after it. ``signal``: an interrupt before it, ``signal-after`` after
#: it. ``outage``: from here on several operations are refused; ``lost-outage``: after this one took effect.
FAULTS = (
    "lost", "lost", "refused", "full", "late", "kill", "kill", "kill-after", "kill-after",
    "signal", "signal-after", "outage", "lost-outage",
)
#: The kinds of operations that a fault counts.
COUNTED = ("any", "any", "write", "create", "delete", "read", "list")


@dataclass(frozen=True)
class Fault:
    """A fault of ``kind`` hits operation number ``at`` (from 1) of those of kind ``counted``."""

    kind: str
    counted: str
    at: int


@dataclass(frozen=True)
class Action:
    """One operation of an actor. ``number``: its batch, if the actor has a user. ``reruns``: the number of retries.

    ``again``: repeat it after success. ``branch``: the branch to run it on, by default the main branch.
    """

    kind: str
    number: int
    rows: Rows = ()
    keys: tuple[tuple[str, int], ...] = ()
    partition: str | None = None
    amount: int = 0
    name: str = ""
    branch: str = ""
    reruns: int = 0
    again: bool = False


@dataclass(frozen=True)
class Actor:
    """A process. ``user``: its batches have ids. ``skew``: the milliseconds that its clock is ahead.

    ``steady``: the chance that it keeps its turn after an operation.
    """

    name: str
    actions: tuple[Action, ...]
    faults: tuple[Fault, ...] = ()
    user: str | None = None
    skew: int = 0
    steady: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """All inputs of a run. The ``founder`` runs two days before the others.

    ``cleans_up``: at the end, no unneeded file may be left.
    """

    seed: int
    schedule: int
    options: tuple[tuple[str, str], ...]
    actors: tuple[Actor, ...]
    founder: Actor | None = None
    cleans_up: bool = False
    keeps_directories: bool = True

    def text(self) -> str:
        """Return the scenario as text."""
        lines = [f"seed {self.seed}, schedule {self.schedule}, {dict(self.options)}, posix={self.keeps_directories}"]
        for actor in [*([self.founder] if self.founder else []), *self.actors]:
            lines.append(f"  {actor.name} user={actor.user} skew={actor.skew} steady={actor.steady:.2f}")
            lines += [f"    {action.number}. {_action_text(action)}" for action in actor.actions]
            lines += [f"    fault: {fault.kind} at operation {fault.at} of {fault.counted}" for fault in actor.faults]
        return "\n".join(lines)


def _action_text(action: Action) -> str:
    """Return an action as text, without default values."""
    values = {field.name: getattr(action, field.name) for field in fields(Action)[2:]}
    given = [field.name for field in fields(Action)[2:] if values[field.name] != field.default]
    changed = (f"{name}={values[name]}" for name in given)
    return " ".join([action.kind, *changed])


def scenario(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    chance = Random(seed)
    options = (
        ("bucket", str(chance.choice((1, 1, 2)))),
        ("manifest.compression", "none"),
        ("manifest.merge-min-count", str(chance.choice((2, 2, 3, 5, 30)))),
        ("manifest.full-compaction-threshold-size", chance.choice(("1 b", "4 kb", "16 mb"))),
        ("num-sorted-run.compaction-trigger", str(chance.choice((2, 3, 5)))),
        ("target-file-size", chance.choice(("100 b", "1 kb", "128 mb"))),
        ("commit.max-retries", chance.choice(("10", "10", "2"))),
        ("write-only", "true"),
    )
    count = chance.choice((2, 2, 3, 3, 4, 5))
    kinds = [chance.choice(("writer", "writer", "changer", "overwriter", "compactor"))]
    kinds += [chance.choice(_KINDS) for _ in range(count - 1)]
    faulty = chance.random() < 0.75
    if chance.random() < 0.5:
        kinds += [chance.choice(_KEEPERS) for _ in range(chance.choice((1, 1, 2)))]
    if chance.random() < 0.15:
        kinds.append("cleaner")
    kinds += (takers := chance.choice(_TAKERS))
    actors = [_actor(chance, kind, at, faulty) for at, kind in enumerate(kinds)]
    named = [actor for actor in actors if actor.user is not None]
    if named and chance.random() < 0.2:  # The same job runs twice: one that seemed killed, and its successor.
        twin = chance.choice(named)
        actors.append(replace(twin, name=f"{twin.name}-twin", faults=_faults(chance, faulty)))
    java = Random(f"java {seed}")
    if not takers and java.random() < 0.5:  # Java does not check whether its base snapshot was rolled back.
        actions = tuple(Action("java", number, reruns=3) for number in range(1, java.randint(2, 4)))
        actors.append(Actor("java", actions, steady=java.choice((0.0, 0.5, 0.95))))
    founder = None
    if chance.random() < 0.6:
        kinds = [chance.choice(("writer", "writer", "compactor", "tagger")) for _ in range(chance.randint(2, 5))]
        actions = [_action(chance, kind, "founder", number) for number, kind in enumerate(kinds, 1)]
        founder = Actor("founder", tuple(actions), _faults(chance, faulty and chance.random() < 0.5))
    return Scenario(
        seed,
        chance.getrandbits(32),
        options,
        tuple(actors),
        founder,
        cleans_up=chance.random() < 0.25,
        keeps_directories=chance.random() < 0.7,
    )


_KINDS = (
    "writer", "writer", "writer", "changer", "changer", "overwriter", "compactor", "compactor", "compactor", "reader",
    "reader",
)


#: Actions on versions of a table.
_KEEPERS = ("tagger", "brancher")


#: Actions that remove versions.
_TAKERS: tuple[tuple[str, ...], ...] = (
    (), (), (), ("expirer",), ("expirer",), ("expirer", "expirer"), ("returner",), ("returner",),
    ("returner", "returner"), ("expirer", "returner"), ("expirer", "returner"),
)


def _actor(chance: Random, kind: str, at: int, faulty: bool) -> Actor:
    name = f"{kind}-{at}"
    user = name if kind in ("writer", "overwriter", "changer") and chance.random() < 0.6 else None
    count = chance.choice((1, 2, 2, 3, 4))
    if kind == "brancher":
        actions = _branching(chance, name)
    else:
        actions = tuple(_action(chance, kind, name, number) for number in range(1, 1 + count))
    skew = chance.choice((0, 0, 0, 5_000, -5_000, 600_000, -600_000))
    if kind == "cleaner":
        skew = chance.choice((0, 600_000, -600_000, 2 * _DAY, -2 * _DAY))
    return Actor(name, actions, _faults(chance, faulty), user, skew, chance.choice((0.0, 0.5, 0.8, 0.95)))


def _faults(chance: Random, faulty: bool) -> tuple[Fault, ...]:
    if not faulty:
        return ()
    count = chance.choice((0, 0, 1, 1, 2, 3))
    return tuple(_fault(chance) for _ in range(count))


def _fault(chance: Random) -> Fault:
    counted = chance.choice(COUNTED)
    max_at = {"any": 120, "write": 25, "create": 4, "delete": 12, "read": 60, "list": 15}[counted]
    return Fault(chance.choice(FAULTS), counted, chance.randint(1, max_at))


def _action(chance: Random, kind: str, actor: str, number: int) -> Action:
    common = {"reruns": chance.choice((0, 1, 2, 3)), "again": chance.random() < 0.15}
    text = f"{actor}.{number}"
    if kind == "writer":
        return Action("append", number, _rows(chance, text, PARTITIONS, 0.25), **common)
    if kind == "changer":
        keys = tuple((chance.choice(PARTITIONS), chance.randrange(_KEYS)) for _ in range(chance.randint(1, 4)))
        return Action(chance.choice(("update", "update", "delete")), number, keys=keys, name=text, **common)
    if kind == "overwriter":
        partition = chance.choice((*PARTITIONS, None, "*"))
        rows = _rows(chance, text, PARTITIONS if partition in (None, "*") else (partition,), 0.0)
        return Action("overwrite", number, rows, partition=partition, **common)
    if kind == "compactor":
        return Action("compact", number, amount=chance.choice((0, 0, 1)), **common)
    if kind == "tagger":
        done = chance.choice(("tag", "tag", "tag", "retag", "rename_tag", "untag", "read_tag"))
        return Action(done, number, name=chance.choice(_TAGS), amount=chance.choice((0, 1, 1)), **common)
    if kind == "cleaner":
        return Action("remove_orphans", number, amount=chance.choice((_HOUR, _HOUR, _DAY)), **common)
    if kind == "expirer":
        return Action("expire", number, amount=chance.choice((1, 1, 2, 3)), **common)
    if kind == "returner":
        name = chance.choice(("", "", *_TAGS))
        return Action("rollback", number, amount=chance.choice((0, 1, 1, 2, 3)), name=name, **common)
    return Action(chance.choice(("read", "read", "read_tag")), number, amount=chance.choice((0, 0, 1)), **common)


_TAGS = ("x", "y")


def _branching(chance: Random, name: str) -> tuple[Action, ...]:
    """Return actions on a branch from its creation, maybe to its deletion. It is made from a tag that may be deleted."""
    reruns = chance.choice((1, 2, 3))
    tag = chance.choice((name, name, *_TAGS))
    actions = [
        Action("tag", 1, name=tag, amount=chance.choice((0, 1)), reruns=reruns),
        Action("branch", 2, name=name, partition=tag, reruns=reruns),
    ]
    for number in range(3, 3 + chance.choice((1, 2, 3))):
        kind = chance.choice(("writer", "writer", "changer", "compactor", "reader"))
        action = _action(chance, kind, name, number)
        actions.append(replace(action, kind="read" if action.kind == "read_tag" else action.kind, branch=name))
    if chance.random() < 0.5:
        actions.append(Action("untag", 8, name=tag, reruns=reruns))
    if chance.random() < 0.5:
        actions.append(Action("unbranch", 9, name=name, reruns=reruns))
    return tuple(actions)


_KEYS = 7


def _rows(chance: Random, text: str, partitions: tuple[str, ...], deletes: float) -> Rows:
    keys = {(chance.choice(partitions), chance.randrange(_KEYS)) for _ in range(chance.randint(1, 5))}
    return tuple(
        (partition, key, 3 if chance.random() < deletes else 0, text) for partition, key in sorted(keys)
    )
