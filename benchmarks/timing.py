"""Timed, repeated, alternating measurements with the process tree's memory. Standard library only."""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_INTERVAL_SECONDS = 0.05

#: The interval between samples of a long run, as a share of its time, so that they cost at most a few hundredths of it.
_INTERVAL_SHARE = 0.02


@dataclass
class Peaks:
    """Peak resident bytes during a measurement: of the JVM, this process, all Python processes below it together (Spark's
    workers, a pool's), the largest of them, and the whole tree. Pages that forked processes share count once for each
    process."""

    jvm: int = 0
    process: int = 0
    workers: int = 0
    largest_worker: int = 0
    tree: int = 0

    def include(self, other: Peaks) -> None:
        """Raise every peak to at least the other's."""
        self.jvm = max(self.jvm, other.jvm)
        self.process = max(self.process, other.process)
        self.workers = max(self.workers, other.workers)
        self.largest_worker = max(self.largest_worker, other.largest_worker)
        self.tree = max(self.tree, other.tree)


@dataclass
class Measurement:
    """One contender at one operation. ``seconds`` and ``cpu_seconds`` (of the whole process tree) exclude the warm-up,
    unless ``once``: then the warm-up is the measurement. ``peaks`` are those of the warm-up, the only turn with memory
    samples; ``other_cpu_seconds`` are those of other processes; ``stored`` are bytes by kind of file."""

    operation: str
    contender: str
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    other_cpu_seconds: list[float] = field(default_factory=list)
    once: bool = False
    peaks: Peaks = field(default_factory=Peaks)
    error: str = ""
    stored: dict[str, int] = field(default_factory=dict)

    @property
    def median(self) -> float | None:
        """Median seconds, or None if nothing was measured."""
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def cpu_median(self) -> float | None:
        """Median processor seconds, or None if nothing was measured."""
        return statistics.median(self.cpu_seconds) if self.cpu_seconds else None

    def to_dict(self) -> dict[str, Any]:
        """Return the measurement for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> Measurement:
        """Return the measurement of :meth:`to_dict`."""
        return Measurement(**{**raw, "peaks": Peaks(**raw["peaks"])})


@dataclass(frozen=True)
class Contender:
    """Something to measure. ``setup`` and ``teardown`` run around each measurement and are not timed; ``check`` gets the
    result of the first run, and raises AssertionError if the answer is wrong."""

    name: str
    run: Callable[[], object]
    setup: Callable[[], object] = lambda: None
    teardown: Callable[[], object] = lambda: None
    check: Callable[[object], None] = lambda result: None


@dataclass(frozen=True)
class Turns:
    """The number of measurements: after a warm-up ``repeat``, or as many as fit into ``max_seconds`` (at least one). A
    warm-up of ``slow_seconds`` or more is the measurement."""

    repeat: int
    slow_seconds: float
    max_seconds: float = float("inf")

    def after(self, warm_up_seconds: float) -> int:
        """Return the number of measurements after a warm-up of this duration."""
        if warm_up_seconds >= self.slow_seconds:
            return 0
        fit = self.max_seconds / max(warm_up_seconds, 1e-9)
        return self.repeat if fit >= self.repeat else max(1, int(fit))


@dataclass(frozen=True)
class _Process:
    parent: int
    name: str
    resident: int
    cpu_ticks: int


def _processes() -> dict[int, _Process]:
    """Return every process in /proc by its pid; its time includes that of its ended children."""
    found: dict[int, _Process] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            text = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # The process has ended since the listing.
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        found[int(entry)] = _Process(
            int(fields[1]), name, int(fields[21]) * _PAGE, sum(int(ticks) for ticks in fields[11:15])
        )
    return found


def _tree(root: int) -> Iterator[tuple[int, _Process]]:
    """Yield ``root`` and its descendants."""
    processes = _processes()
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    pending = [root]
    while pending:
        pid = pending.pop()
        if pid in processes:
            yield pid, processes[pid]
            pending.extend(children.get(pid, ()))


def tree_peaks(root: int) -> Peaks:
    """Return the present resident memory of ``root`` and its descendants."""
    peaks = Peaks()
    for pid, process in _tree(root):
        peaks.tree += process.resident
        if pid == root:
            peaks.process = process.resident
        elif process.name.startswith("java"):
            peaks.jvm += process.resident
        elif process.name.startswith("python"):
            peaks.workers += process.resident
            peaks.largest_worker = max(peaks.largest_worker, process.resident)
    return peaks


def tree_cpu_seconds(root: int) -> float:
    """Return the processor time of ``root`` and its descendants until now, in user and system mode."""
    return sum(process.cpu_ticks for _, process in _tree(root)) / _TICK if os.path.isdir("/proc/self") else 0.0


def machine_cpu_seconds() -> float:
    """Return the processor time of all processes of the machine until now; 0 if the system does not report it."""
    try:
        fields = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()
    except OSError:
        return 0.0
    user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, fields[1:9])
    return (user + nice + system + interrupts + soft_interrupts + stolen) / _TICK


class MemorySampler:
    """Samples the process tree of this process in a thread while its block runs."""

    def __init__(self) -> None:
        self.peaks = Peaks()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        start = time.monotonic()
        while True:
            self.peaks.include(tree_peaks(os.getpid()))
            if self._stop.wait(max(_INTERVAL_SECONDS, _INTERVAL_SHARE * (time.monotonic() - start))):
                return

    def __enter__(self) -> MemorySampler:
        if os.path.isdir("/proc/self"):
            self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()


def error_line(error: BaseException) -> str:
    """Return kind and first useful line of an error: Java's have the cause below 'An error occurred'."""
    lines = [line for line in str(error).strip().splitlines() if not line.startswith("An error occurred while calling")]
    return f"{type(error).__name__}: {lines[0].lstrip(': ') if lines else ''}"[:300]


@dataclass(frozen=True)
class _Turn:
    seconds: float
    cpu_seconds: float
    other_cpu_seconds: float
    result: object


def _once(contender: Contender, peaks: Peaks | None) -> _Turn:
    """Run one turn; if ``peaks`` are given, they get its memory."""
    contender.setup()
    sampler = MemorySampler() if peaks is not None else None
    try:
        with sampler or nullcontext():
            machine, own, start = machine_cpu_seconds(), tree_cpu_seconds(os.getpid()), time.perf_counter()
            result = contender.run()
            seconds = time.perf_counter() - start
            own, machine = tree_cpu_seconds(os.getpid()) - own, machine_cpu_seconds() - machine
    finally:
        contender.teardown()
    if sampler is not None and peaks is not None:
        peaks.include(sampler.peaks)
    return _Turn(seconds, own, max(0.0, machine - own), result)


def measure(operation: str, contenders: Sequence[Contender], turns: Turns) -> list[Measurement]:
    """Warm each contender up once, then run them in turn as often as ``turns`` says, so that a slow minute of the machine
    affects all of them. An exception ends only its own contender, and becomes its ``error``."""
    results = [Measurement(operation, contender.name) for contender in contenders]
    wanted = [turns.repeat] * len(results)
    for turn in range(turns.repeat + 1):
        for at, (contender, result) in enumerate(zip(contenders, results, strict=True)):
            if result.error or turn > wanted[at]:
                continue
            try:
                measured = _once(contender, result.peaks if turn == 0 else None)
                if turn == 0:
                    contender.check(measured.result)
            except Exception as error:  # noqa: BLE001 - a contender's failure of any kind is a result
                traceback.print_exc()
                result.error = error_line(error)
                continue
            if turn == 0:
                wanted[at] = turns.after(measured.seconds)
                result.once = wanted[at] == 0
            if turn > 0 or result.once:
                result.seconds.append(measured.seconds)
                result.cpu_seconds.append(measured.cpu_seconds)
                result.other_cpu_seconds.append(measured.other_cpu_seconds)
            turn_name = str(turn) if turn else "warm-up"
            sys.stdout.write(f"{operation:8} {contender.name:30} {turn_name:8} {measured.seconds:9.3f} s\n")
            sys.stdout.flush()
    return results


def others_share(results: Sequence[Measurement]) -> float:
    """Return the share of all processors that other processes used during the measurements."""
    others = sum(sum(result.other_cpu_seconds) for result in results)
    available = sum(sum(result.seconds) for result in results) * (os.cpu_count() or 1)
    return others / available if available else 0.0


def use_cores(cores: int) -> None:
    """Bind this process and its children to the first ``cores`` processors, if the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
