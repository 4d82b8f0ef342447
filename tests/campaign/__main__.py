"""The command line of the campaigns on real processes; `make kills` and `make soak` call it."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.campaign.kills import ROUNDS, Life, Tally
from tests.campaign.places import Place, place
from tests.campaign.soak import soaked


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a campaign and reports. 0: every promise was kept; 1: one was not, and the directory is kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description="Kill and load real processes.")
    commands = parser.add_subparsers(dest="command", required=True)
    kills = commands.add_parser("kills", help="kill processes at random moments")
    kills.add_argument("--kills", type=int, default=200, help="how many (200)")
    kills.add_argument("--first", type=int, default=0, help="the seed of the first table (0); a table bears some kills")
    kills.add_argument("--where", default="both", help="both (local and s3 by turns), local, s3, or the URI of a bucket")
    kills.add_argument("--seconds", type=float, help="begin no further kill after so many seconds")
    soak = commands.add_parser("soak", help="let writers, maintenance and readers work on one table for a while")
    soak.add_argument("--minutes", type=float, default=15, help="how long (15)")
    soak.add_argument("--where", default="local", help="local, s3, or the URI of a bucket")
    soak.add_argument("--seed", type=int, default=0, help="of what is drawn (0)")
    options = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix=f"lakelsm-{options.command}-"))
    ok = _kills(options, directory) if options.command == "kills" else _soak(options, directory)
    if ok:
        shutil.rmtree(directory)
    else:
        print(f"kept: {directory}")
    return 0 if ok else 1


def _kills(options: argparse.Namespace, directory: Path) -> bool:
    tallies: dict[str, Tally] = {}
    started, seed, failed = time.monotonic(), options.first, 0
    with place("local" if options.where == "both" else options.where, directory) as one, \
            place("s3" if options.where == "both" else "local", directory) as other:
        by_turns = (one, other) if options.where == "both" else (one,)
        while sum(tally.kills.total() for tally in tallies.values()) < options.kills:
            if options.seconds is not None and time.monotonic() - started > options.seconds:
                break
            where = by_turns[seed % len(by_turns)]
            failed += not _life(where, seed, tallies.setdefault("local" if where.is_local else "object store", Tally()))
            seed += 1
    for name, tally in tallies.items():
        told = (f"{what} {count}" for what, count in sorted(tally.kills.items()))
        print(f"{name}: {tally.kills.total()} kills ({', '.join(told)}), {tally.late.total()} came too late;")
        print(f"    {tally.acknowledged} acknowledged batches; kills with leftovers: {dict(tally.with_leftovers)}")
        print(f"    leftovers: {dict(tally.leftovers)}")
    print(f"{seed - options.first} tables from seed {options.first}, {failed} failed, {time.monotonic() - started:.0f} s")
    return failed == 0


def _soak(options: argparse.Namespace, directory: Path) -> bool:
    with place(options.where, directory) as where:
        try:
            report = soaked(where, options.minutes, options.seed)
        except Exception:  # noqa: BLE001 - whatever it is, it is told
            traceback.print_exc()
            print(f"failed, at {where.warehouse}, with seed {options.seed}", flush=True)
            return False
    print(", ".join(f"{what} {count}" for what, count in sorted(report.counts.items())))
    for seconds, files, size in report.sizes[:: max(1, len(report.sizes) // 15)]:
        print(f"{seconds:6.0f} s: {files} files, {size} bytes")
    print(f"{report.told}; {options.minutes:g} minutes, nothing lost or doubled")
    return True


def _life(where: Place, seed: int, total: Tally) -> bool:
    """One table; False where a promise was broken."""
    tally = Tally(seconds=dict(total.seconds))
    try:
        life = Life.begun(where, seed, tally)
        for _ in range(ROUNDS):
            life.round(remove=life.chance.random() < 0.6)
        return True
    except Exception:  # noqa: BLE001 - whatever it is, it is told, and the other tables go on
        traceback.print_exc()
        print(f"seed {seed} failed, at {where.warehouse}; again with: make kills FIRST={seed} KILLS=1", flush=True)
        return False
    finally:
        total.add(tally)
        print(f"seed {seed}: {tally.kills.total()} kills", flush=True)


if __name__ == "__main__":
    sys.exit(main())
