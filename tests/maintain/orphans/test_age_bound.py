"""From which time on files stay: by the store's clock, and an hour at least."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError, StorageError
from lakelsm.maintain.orphans.age_bound import age_bound
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from lakelsm.surroundings import SYSTEM, Surroundings
from tests.compact.local_table import LocalTable

HOUR = 3_600_000
NOW = 50 * HOUR


class OtherClock(LocalFileIO):
    """A store whose clock stands at ``NOW``."""

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        super().write(path, data, durable)
        os.utime(path, ns=(0, NOW * 1_000_000))


class Forgetful(LocalFileIO):
    """A store that does not keep what is written."""

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        pass


def at(millis: int) -> Surroundings:
    return replace(SYSTEM, clock=lambda: millis)


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    return replace(table.store, file_io=OtherClock())


@pytest.mark.parametrize(("here", "bound"), [(NOW, NOW - HOUR), (NOW + 9 * HOUR, NOW - HOUR), (NOW - 9, NOW - HOUR - 9)])
def test_the_earlier_of_two_clocks_counts(store: TableStore, here: int, bound: int) -> None:
    before = set(os.listdir(store.paths.snapshot_dir))
    assert age_bound(store, here - HOUR, at(here), force=False, dry_run=False) == bound
    assert set(os.listdir(store.paths.snapshot_dir)) == before


def test_a_dry_run_writes_nothing_and_trusts_this_machines_clock(store: TableStore) -> None:
    ahead = NOW + 9 * HOUR
    forgetful = replace(store, file_io=Forgetful())
    assert age_bound(forgetful, ahead - HOUR, at(ahead), force=False, dry_run=True) == ahead - HOUR


@pytest.mark.parametrize("age", [HOUR - 1, 0, -5 * HOUR])
def test_less_than_an_hour_is_refused_unless_it_is_forced(store: TableStore, age: int) -> None:
    with pytest.raises(InvalidInputError, match=r"older_than leaves \d+ minutes .* force=True"):
        age_bound(store, NOW - age, at(NOW), force=False, dry_run=True)
    assert age_bound(store, NOW - age, at(NOW), force=True, dry_run=False) == NOW - max(age, 0)


def test_a_store_that_does_not_list_what_was_written_is_refused(store: TableStore) -> None:
    with pytest.raises(StorageError, match="does not list it"):
        age_bound(replace(store, file_io=Forgetful()), 0, at(NOW), force=False, dry_run=False)
