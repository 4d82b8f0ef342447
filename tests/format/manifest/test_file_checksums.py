"""Checksums in the header of an Avro file: one for each record, or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import Container, read_container, write_container
from lakelsm.format.manifest.file_checksums import checksum_header, checksums_of
from tests.format.avro.avro_files import ONE_FIELD


def opened(metadata: dict[str, str] | None = None) -> Container:
    return read_container(write_container(ONE_FIELD, [], "null", metadata=metadata), "manifest-7")


@given(st.lists(st.none() | st.integers(0, (1 << 32) - 1)))
def test_the_checksum_of_each_record_is_read_back(checksums: list[int | None]) -> None:
    assert checksums_of(opened(checksum_header(checksums)), len(checksums)) == checksums


def test_the_header_has_eight_digits_for_each_record() -> None:
    assert checksum_header([255, None, 0]) == {"lakelsm.checksums": "000000ff - 00000000"}


def test_a_file_of_another_writer_has_no_checksums() -> None:
    assert checksums_of(opened(), 3) == [None, None, None]


@pytest.mark.parametrize("text", ["0000000g", "-1-", "0000000\u00e9"])
def test_a_damaged_checksum_is_named_with_its_file(text: str) -> None:
    with pytest.raises(CorruptTableError, match=r"^manifest-7 has damaged checksums in its header\. Restore the file"):
        checksums_of(opened({"lakelsm.checksums": text}), 1)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_checksums_of_another_number_of_records_are_refused(count: int) -> None:
    with pytest.raises(CorruptTableError, match=rf"^manifest-7 has {count} records, but 2 checksums in its header"):
        checksums_of(opened(checksum_header([1, 2])), count)
