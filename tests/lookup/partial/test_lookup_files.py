"""LookupFiles: stores are built once, kept within limits of disk space and time, and built again if damaged."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CorruptStoreError, CorruptTableError, StorageError
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.live_buckets import LiveBuckets
from lakelsm.lookup.partial.lookup_files import LookupFiles
from lakelsm.lookup.partial.store_build import StoredColumns
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.merge.merge_unit import RunFile
from tests.compact.local_table import LocalTable
from tests.lookup.partial.dict_store import DictFormat

_KEYS = pa.table({"id": pa.array([2, 7, 99], pa.int32())})


class _Files:
    """Three data files of a table with the same rows, and their lookup files."""

    def __init__(self, root: Path, directory: CacheDirectory, environment: Environment, **options: str) -> None:
        table = LocalTable(root, **options)
        for number in range(3):
            table.write(*((at, f"{number}-{at}") for at in range(10)))
        spec = LookupSpec(table.store, ("id",), ("v",))
        (bucket,) = LiveBuckets.of(spec, table.latest).partitions[bytes(12)].values()
        self.data = sorted(bucket.files, key=lambda file: file.expected.min_sequence_number if file.expected else 0)
        self.format = DictFormat()
        self.directory = directory
        self.environment = environment
        self.spec = spec
        self.files = self.again()

    def again(self, format: DictFormat | None = None) -> LookupFiles:
        """The files of another cache of the directory."""
        stored = StoredColumns.of(self.spec, merged=True, positions=False)
        more = {"directory": self.directory, "environment": self.environment}
        return LookupFiles(self.spec, stored, format=format or self.format, **more)  # type: ignore[arg-type]

    def values(self, *numbers: int) -> list[list[str]]:
        found = self.files.find([(self.data[number], _KEYS) for number in numbers])
        return [one.rows.column("v").to_pylist() for one in found]

    def path(self, number: int) -> Path:
        return self.directory.file(self.files.name_of(self.data[number]))


@contextmanager
def _opened(root: Path, environment: Environment = SYSTEM, **options: str) -> Iterator[_Files]:
    directory = CacheDirectory.private()
    opened = _Files(root / "table", directory, environment, **options)
    yield opened
    opened.files.close()
    directory.close()


def test_a_store_is_built_when_its_file_is_first_needed(tmp_path: Path) -> None:
    with _opened(tmp_path) as opened:
        assert opened.directory.names() == []
        assert opened.values(1) == [["1-2", "1-7"]]
        assert opened.directory.names() == [opened.path(1).name]
        assert opened.values(1, 0, 1) == [["1-2", "1-7"], ["0-2", "0-7"], ["1-2", "1-7"]]
        assert opened.format.written == 2


def test_another_cache_of_the_directory_opens_the_stores_of_the_first_one(tmp_path: Path) -> None:
    with _opened(tmp_path) as opened:
        opened.values(0, 1)
        other = opened.again()
        assert [len(one.rows) for one in other.find([(file, _KEYS) for file in opened.data])] == [2, 2, 2]
        other.close()
        assert opened.format.written == 3


def test_the_least_recently_used_files_are_dropped_at_the_limit_of_disk_space(tmp_path: Path) -> None:
    with _opened(tmp_path) as opened:
        opened.values(0, 1)
        bound = opened.files.disk_bytes
        store = opened.files.spec.store
        options = replace(store.options, lookup_cache_max_disk_size=bound)
        opened.spec = replace(opened.spec, store=replace(store, options=options))
        opened.files = opened.again()
        opened.values(0, 1)
        opened.values(0)
        opened.values(2)
        assert opened.path(0).exists()
        assert not opened.path(1).exists()
        assert opened.files.disk_bytes <= bound
        assert opened.values(1) == [["1-2", "1-7"]]


def test_files_are_dropped_after_the_retention_time(tmp_path: Path) -> None:
    now = [100.0]
    environment = replace(SYSTEM, monotonic=lambda: now[0])
    with _opened(tmp_path, environment, lookup__cache_file_retention="10 s") as opened:
        opened.values(0, 1)
        now[0] += 9
        opened.values(1)
        now[0] += 9
        opened.files.keep_only(opened.data)
        assert opened.directory.names() == [opened.path(1).name]


def test_files_of_data_files_that_left_the_table_are_dropped(tmp_path: Path) -> None:
    with _opened(tmp_path) as opened:
        opened.values(0, 1)
        opened.files.keep_only(opened.data[1:])
        assert opened.directory.names() == [opened.path(1).name]


def test_a_file_that_is_searched_is_dropped_but_closed_later(tmp_path: Path) -> None:
    with _opened(tmp_path) as opened:
        opened.format.on_find = lambda: opened.files.keep_only([])
        assert opened.values(0, 1) == [["0-2", "0-7"], ["1-2", "1-7"]]
        assert opened.directory.names() == []


def test_old_files_of_ended_processes_are_removed_and_those_of_other_tables_stay(tmp_path: Path) -> None:
    with _opened(tmp_path, lookup__cache_file_retention="1 h") as opened:
        opened.values(0, 1)
        opened.files.close()
        other = opened.directory.file("0123456789abcdef-1.arrow")
        other.touch()
        for path in (other, opened.path(0)):
            os.utime(path, (0, 0))
        opened.again().keep_only(opened.data)
        assert opened.directory.names() == sorted([other.name, opened.path(1).name])


class _FullDisk(DictFormat):
    def write(self, path: Path, layout: StoreLayout, rows: Iterable[pa.Table]) -> None:
        super().write(path, layout, rows)
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_reported_with_the_file_and_leaves_no_file(tmp_path: Path) -> None:
    with _opened(tmp_path) as opened:
        files = opened.again(_FullDisk())
        with pytest.raises(StorageError, match=str(opened.directory.path)):
            files.find([(opened.data[0], _KEYS)])
        assert opened.directory.names() == []
        assert [len(one.rows) for one in opened.files.find([(opened.data[0], _KEYS)])] == [2]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [_cut, _flipped, Path.unlink])
def test_a_damaged_file_is_built_again_with_a_warning_that_names_the_data_file(damage: object, tmp_path: Path) -> None:
    with _opened(tmp_path) as opened:
        opened.values(0)
        opened.files.close()
        assert callable(damage)
        damage(opened.path(0))
        again = opened.again()
        with warnings.catch_warnings(record=True) as reported:
            warnings.simplefilter("always")
            (found,) = again.find([(opened.data[0], _KEYS)])
        assert found.rows.column("v").to_pylist() == ["0-2", "0-7"]
        assert opened.format.written == 2
        assert [opened.data[0].path in str(one.message) for one in reported] == [True] * (damage is not Path.unlink)
        again.close()


class _Damaged(DictFormat):
    """A format whose stores are damaged at first, ``times`` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def open(self, path: Path, layout: object) -> object:  # type: ignore[override]
        store = super().open(path, layout)  # type: ignore[arg-type]
        find = store.find

        def damaged(keys: pa.Table) -> object:
            self.times -= 1
            if self.times >= 0:
                raise CorruptStoreError(f"{path} is damaged")
            return find(keys)

        store.find = damaged  # type: ignore[assignment,method-assign]
        return store


@pytest.mark.parametrize("times", [1, 2])
def test_a_damaged_store_is_built_again_and_the_second_damage_is_raised(times: int, tmp_path: Path) -> None:
    with _opened(tmp_path) as opened:
        files = opened.again(_Damaged(times))
        with pytest.warns(RuntimeWarning, match="is built again"):
            if times == 1:
                assert [len(one.rows) for one in files.find([(opened.data[0], _KEYS)])] == [2]
            else:
                with pytest.raises(CorruptStoreError, match="is damaged"):
                    files.find([(opened.data[0], _KEYS)])
        files.close()


def test_a_damaged_data_file_is_an_error_and_leaves_no_store(tmp_path: Path) -> None:
    with _opened(tmp_path) as opened:
        file: RunFile = opened.data[0]
        _cut(Path(file.path))
        with pytest.raises(CorruptTableError, match=file.name):
            opened.values(0)
        assert opened.directory.names() == []
