"""Timed, repeated, alternating measurements with the process tree's memory. Standard library only."""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_INTERVAL_SECONDS = 0.05


@dataclass
class Peaks:
    """Peak resident bytes while something ran: the JVM, this process, all Spark Python workers together,
    and the largest single worker. Pages shared between forked workers count once for each of them."""

    jvm: int = 0
    process: int = 0
    workers: int = 0
    largest_worker: int = 0

    def include(self, other: Peaks) -> None:
        """Raise every peak to at least the other's."""
        self.jvm = max(self.jvm, other.jvm)
        self.process = max(self.process, other.process)
        self.workers = max(self.workers, other.workers)
        self.largest_worker = max(self.largest_worker, other.largest_worker)


@dataclass
class Measurement:
    """One contender at one operation. ``seconds`` and ``cpu_seconds`` (of the whole process tree) leave the
    warm-up out, unless ``once`` says that it is all; ``stored`` is bytes by what they are of."""

    operation: str
    contender: str
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    once: bool = False
    peaks: Peaks = field(default_factory=Peaks)
    error: str = ""
    stored: dict[str, int] = field(default_factory=dict)

    @property
    def median(self) -> float | None:
        """Median seconds, or None when nothing was measured."""
        return statistics.median(self.seconds) if self.seconds else None

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> Measurement:
        """The inverse of :meth:`to_dict`."""
        return Measurement(**{**raw, "peaks": Peaks(**raw["peaks"])})


@dataclass(frozen=True)
class Contender:
    """Something to measure. ``setup`` and ``teardown`` are not timed and run around each measurement;
    ``check`` looks at the result of the first run and raises AssertionError when the answer is wrong."""

    name: str
    run: Callable[[], object]
    setup: Callable[[], object] = lambda: None
    teardown: Callable[[], object] = lambda: None
    check: Callable[[object], None] = lambda result: None


@dataclass(frozen=True)
class _Process:
    parent: int
    name: str
    resident: int
    cpu_ticks: int


def _processes() -> dict[int, _Process]:
    """Every process that /proc shows by its pid; its time includes that of children that ended."""
    found: dict[int, _Process] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            text = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # the process ended meanwhile
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        found[int(entry)] = _Process(
            int(fields[1]), name, int(fields[21]) * _PAGE, sum(int(ticks) for ticks in fields[11:15])
        )
    return found


def _tree(root: int) -> Iterator[tuple[int, _Process, bool]]:
    """``root`` and its descendants: pid, process, whether a JVM is above it."""
    processes = _processes()
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    pending = [(root, False)]
    while pending:
        pid, below_jvm = pending.pop()
        if pid in processes:
            process = processes[pid]
            yield pid, process, below_jvm
            below = below_jvm or process.name.startswith("java")
            pending.extend((child, below) for child in children.get(pid, ()))


def tree_peaks(root: int) -> Peaks:
    """Resident memory now of ``root`` and its descendants. Pythons below a JVM are Spark's workers."""
    peaks = Peaks()
    for pid, process, below_jvm in _tree(root):
        if process.name.startswith("java"):
            peaks.jvm += process.resident
        elif below_jvm and process.name.startswith("python"):
            peaks.workers += process.resident
            peaks.largest_worker = max(peaks.largest_worker, process.resident)
        elif pid == root:
            peaks.process = process.resident
    return peaks


def tree_cpu_seconds(root: int) -> float:
    """Processor time that ``root`` and its descendants have used until now, in user and system mode."""
    return sum(process.cpu_ticks for _, process, _ in _tree(root)) / _TICK if os.path.isdir("/proc/self") else 0.0


class MemorySampler:
    """Samples the process tree of this process on a thread while its block runs."""

    def __init__(self) -> None:
        self.peaks = Peaks()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while True:
            self.peaks.include(tree_peaks(os.getpid()))
            if self._stop.wait(_INTERVAL_SECONDS):
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
    """The kind and the first line of an error."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def _once(contender: Contender, peaks: Peaks) -> tuple[float, float, object]:
    contender.setup()
    try:
        with MemorySampler() as sampler:
            cpu_before, start = tree_cpu_seconds(os.getpid()), time.perf_counter()
            result = contender.run()
            seconds = time.perf_counter() - start
            cpu_seconds = tree_cpu_seconds(os.getpid()) - cpu_before
    finally:
        contender.teardown()
    peaks.include(sampler.peaks)
    return seconds, cpu_seconds, result


def measure(
    operation: str, contenders: Sequence[Contender], repeat: int, slow_seconds: float
) -> list[Measurement]:
    """Warm each contender up once, then run them in turn ``repeat`` times, so that a machine's slow minute
    falls on all of them. A contender whose warm-up took ``slow_seconds`` or more is not run again; an
    exception ends only its own contender, and is kept as its ``error``."""
    results = [Measurement(operation, contender.name) for contender in contenders]
    for turn in range(repeat + 1):
        for contender, result in zip(contenders, results, strict=True):
            if result.error or result.once:
                continue
            peaks = Peaks()
            try:
                seconds, cpu_seconds, answer = _once(contender, peaks)
                if turn == 0:
                    contender.check(answer)
            except Exception as error:  # noqa: BLE001 - a contender's failure of any kind is a result
                traceback.print_exc()
                result.error = error_line(error)
                continue
            result.peaks.include(peaks)
            if turn == 0 and seconds >= slow_seconds:
                result.once = True
            if turn > 0 or result.once:
                result.seconds.append(seconds)
                result.cpu_seconds.append(cpu_seconds)
            turn_name = str(turn) if turn else "warm-up"
            sys.stdout.write(f"{operation:8} {contender.name:30} {turn_name:8} {seconds:9.3f} s\n")
            sys.stdout.flush()
    return results


def use_cores(cores: int) -> None:
    """Bind this process and what it starts to the first ``cores`` processors, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
