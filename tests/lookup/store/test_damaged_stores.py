"""Damaged store files give the right rows or CorruptStoreError, never other rows, other errors or a dead process."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from lakelsm.errors import CorruptStoreError
from tests.chance import FUZZ_EXAMPLES, seeds
from tests.lookup.store.damaged_store import Samples, before_open, trials_while_open
from tests.lookup.store.store_kinds import KINDS
from tests.processes import CONTEXT, ended, started

#: Seeds of trials; `make fuzz` runs others, and more.
_BEFORE = seeds(80, 2 * FUZZ_EXAMPLES)
_WHILE = seeds(40, FUZZ_EXAMPLES)


@pytest.mark.property
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_damaged_before_it_is_opened(kind: str, tmp_path: Path) -> None:
    samples = Samples(kind, tmp_path)
    wrong = {number: before_open(samples, Random(number)) for number in _BEFORE}
    assert not {number: said for number, said in wrong.items() if said}


@pytest.mark.property
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_damaged_while_it_is_open(kind: str, tmp_path: Path) -> None:
    reported: multiprocessing.SimpleQueue[list[str]] = CONTEXT.SimpleQueue()
    assert ended(started(trials_while_open, kind, _WHILE, tmp_path, reported)) == 0
    assert reported.get() == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_bit_of_a_file_counts(kind: str, tmp_path: Path) -> None:
    samples = Samples(kind, tmp_path)
    chance = Random(3)
    silent = 0
    for at in chance.sample(range(8 * len(samples.data)), 60):
        data = bytearray(samples.data)
        data[at // 8] ^= 1 << at % 8
        samples.path.write_bytes(data)
        try:
            store = samples.format.open(samples.path, samples.layout)
            assert samples.finds_right_rows(store, 0)
            store.close()
            silent += 1  # Padding between the parts, or a part that these keys do not need.
        except CorruptStoreError:
            pass
    assert silent < 20


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_overwritten_with_another_valid_one_while_open_gives_no_row_of_it(kind: str, tmp_path: Path) -> None:
    samples = Samples(kind, tmp_path)
    for other in samples.others[:2]:
        samples.path.write_bytes(samples.data)
        os.utime(samples.path, ns=(1, 1))
        store = samples.format.open(samples.path, samples.layout)
        with samples.path.open("r+b") as file:
            file.write(other[: len(samples.data)].ljust(len(samples.data), b"\0"))
        with pytest.raises(CorruptStoreError):
            samples.finds_right_rows(store, 0)
        store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_that_is_not_a_file_is_reported(kind: str, tmp_path: Path) -> None:
    samples = Samples(kind, tmp_path)
    samples.path.mkdir()
    with pytest.raises(CorruptStoreError):
        samples.format.open(samples.path, samples.layout)
    samples.path.rmdir()
    os.mkfifo(samples.path)
    with pytest.raises(CorruptStoreError):
        samples.format.open(samples.path, samples.layout)


@pytest.mark.parametrize("kind", KINDS)
def test_an_open_file_that_is_replaced_or_removed_can_still_be_read(kind: str, tmp_path: Path) -> None:
    samples = Samples(kind, tmp_path)
    samples.path.write_bytes(samples.data)
    store = samples.format.open(samples.path, samples.layout)
    samples.path.unlink()
    assert samples.finds_right_rows(store, 7)
    samples.path.write_bytes(samples.others[0])
    assert samples.finds_right_rows(store, 8)
    store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_other_rows_or_columns_is_not_opened(kind: str, tmp_path: Path) -> None:
    samples = Samples(kind, tmp_path)
    samples.path.write_bytes(samples.data)
    samples.format.open(samples.path, samples.layout).close()
    for other in (replace(samples.layout, values=()), replace(samples.layout, rows_of="another file")):
        with pytest.raises(CorruptStoreError, match=r"not the expected ones|other rows"):
            samples.format.open(samples.path, other)
