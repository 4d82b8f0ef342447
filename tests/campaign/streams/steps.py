"""The steps of a micro-batch at which a process of a stream is killed.

A campaign writes an order into a file. Each process of the stream reports its steps to `reached`; the one that the order
names claims it and kills its victim, usually itself. No product code knows of this: tests install the reports.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lakelsm.storage import LocalFileIO
from lakelsm.storage.object_store import ObjectFileIO
from tests.campaign.processes import ancestors

#: The environment variable with the directory of the order.
ORDERS = "LAKELSM_STREAM_KILLS"

DRIVER, TASK, SOURCE, SINK, PLANNER = "driver", "task", "source", "sink", "planner"
#: Who is killed: the process at the step, the JVM with the query, or the JVM that started the process.
ITSELF, JVM, EXECUTOR = "itself", "JVM", "executor"

_MODULES = {
    "pyspark.sql.streaming.python_streaming_source_runner": SOURCE,
    "pyspark.sql.worker.python_streaming_sink_runner": SINK,
    "pyspark.worker": TASK,
}
_KINDS = {
    "snapshot-": "snapshot",
    "manifest-list-": "manifest list",
    "manifest-": "manifest",
    "index-": "index",
    "consumer-": "consumer",
    "LATEST": "hint",
    "EARLIEST": "hint",
}


@dataclass(frozen=True)
class Order:
    """Kill the ``victim`` when a process with a role comes to a step for the ``nth`` time, and ``kills`` in sum."""

    role: str
    step: str
    nth: int = 1
    victim: str = ITSELF
    kills: int = 1
    jvm: int = 0

    @property
    def name(self) -> str:
        return f"{self.role}: {self.step}" if self.victim == ITSELF else f"{self.victim} at {self.role}: {self.step}"


@dataclass(frozen=True)
class Orders:
    """The directory of the order. One order is open at a time."""

    folder: Path

    def give(self, order: Order | None) -> None:
        """Replace the order; none removes it."""
        self.folder.mkdir(exist_ok=True)
        for old in self.folder.iterdir():
            old.unlink(missing_ok=True)
        if order is not None:
            self._put(order)

    def _put(self, order: Order) -> None:
        temporary = self.folder / f"new-{os.getpid()}"
        temporary.write_text(json.dumps(asdict(order)))
        temporary.rename(self.folder / "order")

    def kills(self) -> int:
        """Return how many victims the order has had."""
        return len(list(self.folder.glob("claimed-*")))

    def current(self) -> Order | None:
        try:
            return Order(**json.loads((self.folder / "order").read_text()))
        except FileNotFoundError:
            return None

    def is_due(self, order: Order) -> bool:
        """Count the step, and return whether this process is to kill."""
        with (self.folder / "reached").open("ab", buffering=0) as counts:
            counts.write(b".")
            count = counts.tell()
        if count < order.nth:
            return False
        try:
            (self.folder / "order").rename(self.folder / f"claimed-{os.getpid()}-{count}")
        except FileNotFoundError:  # Another process was faster.
            return False
        if order.kills > 1:
            self._put(replace(order, kills=order.kills - 1))
        return True


def role() -> str:
    """Return the role of this process, by the module that Spark runs in it."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    names = (sys.argv[1] if len(sys.argv) > 1 else "", getattr(spec, "name", ""))
    return next((_MODULES[name] for name in names if name in _MODULES), _role)


_role = PLANNER


def play(name: str) -> None:
    """Set the role of this process, and of those that are forked from it, if no module of Spark decides it."""
    global _role
    _role = name


def reached(step: str) -> None:
    """Report a step of this process. It may be its end."""
    folder = os.environ.get(ORDERS)
    if folder is None:
        return
    orders = Orders(Path(folder))
    order = orders.current()
    if order is None or order.step != step or order.role != role() or not orders.is_due(order):
        return
    victim = {ITSELF: os.getpid, JVM: lambda: order.jvm, EXECUTOR: _executor}[order.victim]()
    with suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)


def _executor() -> int:
    return next(pid for pid, name in ancestors(os.getpid()) if name == "java")


def watch_files() -> None:
    """Make the stores of this process report each file before and after it is written, and deletions."""
    for kind in (LocalFileIO, ObjectFileIO):
        for name in ("create_if_absent", "write", "make_durable"):
            _report_calls(kind, name, _kind_of)
        _report_calls(kind, "delete_files", lambda *_: "deletion")


def _kind_of(path: str, names: Any = b"", *_: Any, **__: Any) -> str:
    if isinstance(names, (list, tuple)):
        return "data file" if "/bucket-" in path else "file"
    folder, _, name = path.rpartition("/")
    if folder.endswith("/consumer"):
        return "consumer"
    return next((kind for start, kind in _KINDS.items() if name.startswith(start)), "file")


def _report_calls(kind: type, name: str, kind_of: Callable[..., str]) -> None:
    call = getattr(kind, name)
    if hasattr(call, "__wrapped__"):
        return

    @functools.wraps(call)
    def reporting(self: Any, *arguments: Any, **named: Any) -> Any:
        what = kind_of(*arguments, **named)
        reached(f"before {what}")
        result = call(self, *arguments, **named)
        reached(f"after {what}")
        return result

    setattr(kind, name, reporting)
