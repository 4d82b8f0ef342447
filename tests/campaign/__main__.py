"""The command line of the campaigns on real processes; `make kills` and `make soak` call it."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaign.kills import ROUNDS, Life, Tally
from tests.campaign.locations import Warehouse, open_warehouse
from tests.campaign.soak import soaked
from tests.campaign.spark_driver import SparkDriver
from tests.campaign.streams.stream_campaigns import SINKS, SOURCES, stream_kills, stream_soak


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign and report. Return 0 if all guarantees held, else 1; the directory is then kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description="Kill and load real processes.")
    commands = parser.add_subparsers(dest="command", required=True)
    kills = commands.add_parser("kills", help="kill processes at random moments")
    kills.add_argument("--kills", type=int, default=200, help="how many (200)")
    kills.add_argument("--first", type=int, default=0, help="the seed of the first table (0); a table has several kills")
    kills.add_argument("--where", default="both", help="both (local and s3 in turn), local, s3, or the URI of a bucket")
    kills.add_argument("--spark", type=int, help="how many of them under Spark, on local files (a tenth)")
    kills.add_argument("--seconds", type=float, help="start no further kill after this many seconds")
    soak = commands.add_parser("soak", help="run writers, maintenance and readers on one table for a while")
    soak.add_argument("--minutes", type=float, default=15, help="how long (15)")
    soak.add_argument("--where", default="local", help="local, s3, or the URI of a bucket")
    soak.add_argument("--seed", type=int, default=0, help="of the random numbers (0)")
    streams = commands.add_parser("streams", help="kill streams at the steps of their micro-batches")
    streams.add_argument("--kills", type=int, default=300, help="how many (300)")
    streams.add_argument("--first", type=int, default=0, help="the seed of the first stream (0); it has several kills")
    streams.add_argument("--where", default="both", help="both (local and s3 in turn), local, s3, or the URI of a bucket")
    streams.add_argument("--sources", nargs="+", choices=SOURCES, default=SOURCES, help="what the streams read (all)")
    streams.add_argument("--sinks", nargs="+", choices=SINKS, default=SINKS, help="the ways of writing (all)")
    streams.add_argument("--executors", type=int, default=10, help="how many kills of an executor of them (10)")
    streams.add_argument("--seconds", type=float, help="start no further stream after this many seconds")
    soak_streams = commands.add_parser("soak-streams", help="run two streams into a table and one out of it")
    soak_streams.add_argument("--minutes", type=float, default=30, help="how long (30)")
    soak_streams.add_argument("--where", default="local", help="local, s3, or the URI of a bucket")
    soak_streams.add_argument("--producer", default="input", help="the changelog producer of the table (input)")
    soak_streams.add_argument("--seed", type=int, default=0, help="of the random numbers (0)")
    options = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix=f"lakelsm-{options.command}-"))
    campaigns = {"kills": _kills, "soak": _soak, "streams": stream_kills, "soak-streams": stream_soak}
    ok = campaigns[options.command](options, directory)
    if ok:
        shutil.rmtree(directory)
    else:
        print(f"kept: {directory}")
    return 0 if ok else 1


def _kills(options: argparse.Namespace, directory: Path) -> bool:
    campaign = _Campaign(time.monotonic(), options.first, options.seconds)
    on_spark = options.kills // 10 if options.spark is None else min(options.spark, options.kills)
    with ExitStack() as stack:
        names = ("local", "s3") if options.where == "both" else (options.where,)
        warehouses = [stack.enter_context(open_warehouse(name, directory)) for name in names]
        campaign.run(options.kills - on_spark, warehouses)
        if on_spark:
            driver = SparkDriver(directory / "spark")
            stack.callback(driver.stop)
            campaign.run(on_spark, [stack.enter_context(open_warehouse("local", directory))], driver)
    return campaign.report()


@dataclass
class _Campaign:
    """A campaign of kills on one table after the other."""

    started: float
    seed: int
    seconds: float | None
    tables: int = 0
    failed: int = 0
    tallies: dict[str, Tally] = field(default_factory=dict)

    def run(self, kills: int, warehouses: Sequence[Warehouse], driver: SparkDriver | None = None) -> None:
        """Run at least ``kills`` more kills."""
        end = self.kills + kills
        while self.kills < end and (self.seconds is None or time.monotonic() - self.started < self.seconds):
            where = warehouses[self.seed % len(warehouses)]
            name = "object store" if not where.is_local else "local" if driver is None else "Spark"
            max_rounds = min(ROUNDS, end - self.kills) if driver is not None else ROUNDS
            self.failed += not _life(where, self.seed, self.tallies.setdefault(name, Tally()), max_rounds, driver)
            self.seed, self.tables = self.seed + 1, self.tables + 1

    @property
    def kills(self) -> int:
        return sum(tally.kills.total() for tally in self.tallies.values())

    def report(self) -> bool:
        """Print what was done; return whether all guarantees held."""
        for name, tally in self.tallies.items():
            counts = (f"{what} {count}" for what, count in sorted(tally.kills.items()))
            print(f"{name}: {tally.kills.total()} kills ({', '.join(counts)}), {tally.late.total()} came too late;")
            print(f"    {tally.published} of them between the publication of a snapshot and the end of its operation;")
            print(f"    {tally.acknowledged} acknowledged batches; kills with leftovers: {dict(tally.with_leftovers)}")
            print(f"    leftovers: {dict(tally.leftovers)}")
            if tally.outcomes:
                print(f"    ends of actions whose JVM was killed: {dict(tally.outcomes)}")
        print(f"{self.tables} tables, {self.failed} failed, {time.monotonic() - self.started:.0f} s")
        return self.failed == 0


def _soak(options: argparse.Namespace, directory: Path) -> bool:
    with open_warehouse(options.where, directory) as where:
        try:
            report = soaked(where, options.minutes, options.seed)
        except Exception:  # noqa: BLE001 - any failure is reported
            traceback.print_exc()
            print(f"failed, at {where.warehouse}, with seed {options.seed}", flush=True)
            return False
    print(", ".join(f"{what} {count}" for what, count in sorted(report.counts.items())))
    for seconds, files, size in report.sizes[:: max(1, len(report.sizes) // 15)]:
        print(f"{seconds:6.0f} s: {files} files, {size} bytes")
    print(f"{report.summary}; {options.minutes:g} minutes, nothing lost or doubled")
    return True


def _life(where: Warehouse, seed: int, total: Tally, rounds: int, driver: SparkDriver | None) -> bool:
    """Run the kills of one table; return False if a guarantee was broken."""
    tally = Tally(seconds=dict(total.seconds))
    try:
        life = Life.create(where, seed, tally, driver)
        for _ in range(rounds):
            life.round(remove=life.chance.random() < 0.6)
        return True
    except Exception:  # noqa: BLE001 - any failure is reported, and the other tables continue
        traceback.print_exc()
        again = f"make kills FIRST={seed} KILLS={rounds} WHERE={'local' if where.is_local else 's3'}"
        more = f" ARGS='--spark {rounds}'" if driver is not None else " ARGS='--spark 0'"
        print(f"seed {seed} failed, at {where.warehouse}; again with: {again}{more}", flush=True)
        return False
    finally:
        total.add(tally)
        print(f"seed {seed}: {tally.kills.total()} kills", flush=True)


if __name__ == "__main__":
    sys.exit(main())
