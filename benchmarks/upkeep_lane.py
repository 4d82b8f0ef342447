"""Upkeep of a table that is used for years, in a process without a JVM: ``python -m benchmarks.upkeep_lane CONFIG OUT``.

prepare: the tables; expire: the oldest tenth of a thousand snapshots, whose data files do not exist, so that their
deletion is not measured; orphan-scan: a dry run; check: no data file is opened; store-commit: see `store_commits`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import fastavro

from benchmarks.config import BenchConfig
from benchmarks.engine import open_table
from benchmarks.lane import run_lane
from benchmarks.names import BARE_AVRO, DIRECTORY_WALK, ENGINE
from benchmarks.store_commits import StoreCommits, object_server
from benchmarks.timing import Contender, Measurement, measure
from benchmarks.upkept_tables import (
    LISTED_A_FILE,
    SNAPSHOTS,
    copy_metadata,
    prepare_kept,
    prepare_searched,
    replaced_each_time,
)
from benchmarks.workspace import remove

_EXPIRED = SNAPSHOTS // 10


def run(config: BenchConfig) -> list[Measurement]:
    """Measure the operations of the configuration."""
    kept, searched = prepare_kept(config), prepare_searched(config)
    if config.operations == ("prepare",):
        return []
    if config.operations == ("store-commit",):
        with object_server() as (location, options):
            return measure("store-commit", StoreCommits(location, options).contenders(), config.turns)
    contenders = {
        "expire": lambda: _expiry(config, kept),
        "orphan-scan": lambda: _search(config, searched),
        "check": lambda: _check(config, kept),
    }
    results: list[Measurement] = []
    for operation in config.operations:
        results += measure(operation, contenders[operation](), config.turns)
    return results


def _expiry(config: BenchConfig, kept: Path) -> list[Contender]:
    scratch = config.scratch / "expired"

    def expire() -> object:
        return open_table(scratch).maintenance.expire_snapshots(retain_last=SNAPSHOTS - _EXPIRED, max_deletes=_EXPIRED)

    def check(result: object) -> None:
        found = getattr(result, "data_files", None)
        assert found == _EXPIRED * replaced_each_time(config.files), f"wrong answer: {result}"

    return [Contender(ENGINE, expire, lambda: copy_metadata(kept, scratch), lambda: remove(scratch), check)]


def _search(config: BenchConfig, searched: Path) -> list[Contender]:
    orphans = LISTED_A_FILE * config.files - config.files - replaced_each_time(config.files) * (SNAPSHOTS - 1)

    def check(result: object) -> None:
        assert getattr(result, "files", None) == orphans, f"wrong answer: {result}, expected {orphans} orphans"

    def search() -> object:
        return open_table(searched).maintenance.remove_orphans("1 day", dry_run=True, engine="local")

    return [Contender(ENGINE, search, check=check), Contender(DIRECTORY_WALK, lambda: _walked(searched))]


def _walked(folder: Path) -> int:
    """Read the size and time of every file, the minimum for a listing."""
    found, folders = 0, [os.fspath(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    found += 1
    return found


def _check(config: BenchConfig, kept: Path) -> list[Contender]:
    def check(result: object) -> None:
        findings, files = getattr(result, "findings", None), getattr(result, "files", None)
        assert findings == () and files == config.files, f"wrong answer: {files} files, {findings}"

    def decode() -> int:
        found = 0
        for path in (kept / "manifest").iterdir():
            with path.open("rb") as file:
                found += sum(1 for _ in fastavro.reader(file))
        return found

    ours = Contender(ENGINE, lambda: open_table(kept).maintenance.check(data="none", engine="local"), check=check)
    return [ours, Contender(BARE_AVRO, decode)]


if __name__ == "__main__":
    sys.exit(run_lane(run, sys.argv[1:]))
