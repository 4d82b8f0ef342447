"""The command line of the simulation. `make simulate` calls it."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from typing import TypeAlias

from tests.simulation.planted_faults import PLANTED_FAULTS, planted
from tests.simulation.scenario import scenario
from tests.simulation.shrink import shrunk
from tests.simulation.simulate import failure_of

#: The number of seeds in one task of a worker.
_CHUNK = 100
#: The number of seeds run, the failed seeds with reasons, and counts of the outcomes of actions.
_Ran: TypeAlias = tuple[int, list[tuple[int, str]], Counter[str]]
#: A planted fault must be found within this number of seeds.
MAX_SEEDS = 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run seeds and report failures. Exit status 0: no failure; 1: a seed failed, or a planted fault was not found."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description="Simulate concurrent writes of tables with faults."
    )
    parser.add_argument("--seeds", type=int, default=3000, help="number of seeds (default: 3000)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default: 0)")
    parser.add_argument("--workers", type=int, default=2, help="number of processes (default: 2)")
    parser.add_argument("--seconds", type=float, help="start no seed later than this number of seconds")
    parser.add_argument("--seed", type=int, help="run only this seed: print its scenario, and shrink it if it fails")
    parser.add_argument("--planted", action="store_true", help="plant faults in the engine, count the seeds to find them")
    parser.add_argument("--only", help="name of the only planted fault; also used with --seed")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # The simulation causes failures after commits.
    logging.getLogger("lakelsm").setLevel(logging.CRITICAL)
    if options.seed is not None:
        return _run_seed(options.seed, options.only)
    if options.planted:
        return _run_planted([options.only] if options.only else list(PLANTED_FAULTS), options.first, options.workers)
    return _run_seeds(options.first, options.seeds, options.workers, options.seconds)


def _run_seed(seed: int, fault: str | None) -> int:
    with planted(fault) if fault else nullcontext():
        failing = scenario(seed)
        failure = failure_of(failing)
        print(failing.text())
        if failure is None:
            print("no failure")
            return 0
        traceback.print_exception(failure)
        smaller = shrunk(failing, lambda other: failure_of(other) is not None)
        print("shrunk:")
        print(smaller.text())
        again = failure_of(smaller)
        print(f"{type(again).__name__}: {again}")
        return 1


def _run_seeds(first: int, count: int, workers: int, seconds: float | None) -> int:
    started = last_report = time.monotonic()
    chunks = [range(start, min(start + _CHUNK, first + count)) for start in range(first, first + count, _CHUNK)]
    failed = done = 0
    outcomes: Counter[str] = Counter()
    for ran, failures, counts in _in_processes(chunks, workers, started, seconds):
        done += ran
        outcomes.update(counts)
        for seed, text in failures:
            failed += 1
            print(f"seed {seed}: {text}; run it again with: make simulate SEED={seed}", flush=True)
        if time.monotonic() - last_report > 60:
            last_report = time.monotonic()
            print(f"{done} seeds, {failed} failed, {done / (last_report - started):.0f} seeds/s", flush=True)
    taken = time.monotonic() - started
    print(", ".join(f"{what} {times}" for what, times in sorted(outcomes.items())))
    print(f"{done} seeds from {first}, {failed} failed, {taken:.1f} s, {done / taken:.0f} seeds/s")
    return 1 if failed else 0


def _in_processes(
    chunks: Iterable[range], workers: int, started: float, seconds: float | None
) -> Iterator[_Ran]:
    if workers == 1:
        for chunk in chunks:
            if seconds is not None and time.monotonic() - started > seconds:
                return
            yield _run_chunk(chunk)
        return
    with ProcessPoolExecutor(workers) as pool:
        running: set[Future[_Ran]] = set()
        for chunk in chunks:
            if seconds is not None and time.monotonic() - started > seconds:
                break
            running.add(pool.submit(_run_chunk, chunk))
            if len(running) >= 2 * workers:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in ended)
        yield from (future.result() for future in running)


def _run_chunk(seeds: range) -> _Ran:
    failures, outcomes = [], Counter[str]()
    gc.disable()  # Saves a sixth of the time. The garbage of a chunk is small, and is freed at its end.
    try:
        for seed in seeds:
            failure = failure_of(scenario(seed), outcomes)
            if failure is not None:
                failures.append((seed, f"{type(failure).__name__}: {failure}"))
    finally:
        gc.enable()
        gc.collect()
    return len(seeds), failures, outcomes


def _run_planted(names: Sequence[str], first: int, workers: int) -> int:
    found = 0
    with ProcessPoolExecutor(workers) as pool:
        for name, (count, text) in zip(names, pool.map(_seeds_to_find, names, [first] * len(names))):
            found += count is not None
            result = "NOT FOUND" if count is None else f"{count:6d} seeds"
            print(f"{result}  {name}: {text}", flush=True)
    print(f"{found} of {len(names)} planted faults were found within {MAX_SEEDS} seeds")
    return 0 if found == len(names) else 1


def _seeds_to_find(name: str, first: int) -> tuple[int | None, str]:
    with planted(name):
        for count in range(1, MAX_SEEDS + 1):
            failure = failure_of(scenario(first + count - 1))
            if isinstance(failure, (TypeError, AttributeError)):
                raise failure  # The engine no longer calls the function that the stand-in replaces.
            if failure is not None:
                return count, f"{type(failure).__name__}: {failure}"[:160]
    return None, ""


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # The order of sets must be the same in each process.
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
