"""The campaigns on streams: kills at all steps of a micro-batch, and a soak."""

from __future__ import annotations

import argparse
import time
import traceback
from contextlib import ExitStack
from itertools import product
from pathlib import Path

from tests.campaign.locations import open_warehouse
from tests.campaign.streams.queries import DATA_SOURCE, NATIVE
from tests.campaign.streams.sessions import CLUSTER, StreamSession
from tests.campaign.streams.steps import EXECUTOR, ITSELF, JVM
from tests.campaign.streams.stream_kills import StreamTally, stream_life
from tests.campaign.streams.stream_soak import soaked_streams

SOURCES = ("table", "files")
SINKS = (NATIVE, DATA_SOURCE)
#: Further streams are not started.
_MAX_FAILED = 5
_EVERYWHERE = ("local", "s3")


def stream_kills(options: argparse.Namespace, directory: Path) -> bool:
    """Run streams with kills, one after the other; return whether all guarantees held."""
    begun, seed, failed = time.monotonic(), options.first, 0
    kinds = list(product(options.sources, options.sinks))
    tallies: dict[str, StreamTally] = {}
    starts = 0
    with ExitStack() as stack:
        names = _EVERYWHERE if options.where == "both" else (options.where,)
        warehouses = [stack.enter_context(open_warehouse(name, directory)) for name in names]
        for is_cluster in (False, True):
            session = StreamSession(directory / ("cluster" if is_cluster else "spark"))
            stack.callback(session.stop)
            if is_cluster:
                session.master = CLUSTER
            wanted = options.executors if is_cluster else options.kills - options.executors
            done = 0
            end = begun + (options.seconds or float("inf")) * (1 if is_cluster else 0.85)
            while done < wanted and failed < _MAX_FAILED and time.monotonic() < end:
                where = warehouses[(seed // len(kinds)) % len(warehouses)]
                name = "executors" if is_cluster else "local" if where.is_local else "object store"
                tally, before = tallies.setdefault(name, StreamTally()), tallies[name].kills.total()
                failed += not stream_life(
                    session, where, directory, seed, tally,
                    kinds=kinds[seed % len(kinds)], victims=(EXECUTOR,) if is_cluster else (ITSELF, JVM),
                )
                seed, done = seed + 1, done + max(1, tally.kills.total() - before)
            session.stop()
            starts += session.starts
    for name, tally in tallies.items():
        print(f"{name}: {tally.kills.total()} kills, {tally.late.total()} orders whose step was not reached;")
        for step, count in sorted(tally.kills.items()):
            print(f"    {count:4d} {step}")
        print(f"    ends: {dict(tally.ends)}; {tally.old} restarts from old checkpoints; {tally.orphans} orphans removed")
    print(f"{seed - options.first} streams, {failed} failed, {starts} starts of a JVM, {time.monotonic() - begun:.0f} s")
    return failed == 0


def stream_soak(options: argparse.Namespace, directory: Path) -> bool:
    """Run the soak of streams; return whether all guarantees held."""
    with open_warehouse(options.where, directory) as where:
        try:
            text = soaked_streams(where, directory, 60 * options.minutes, options.seed, options.producer)
        except Exception:  # noqa: BLE001 - any failure is reported
            traceback.print_exc()
            print(f"failed, at {where.warehouse}, with seed {options.seed}", flush=True)
            return False
    print(f"{text}; {options.minutes:g} minutes, nothing lost, doubled or out of order")
    return True
