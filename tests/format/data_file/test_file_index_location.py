"""The location of a data file's indexes, and the damage that is refused there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.file_index_location import FileIndexLocation
from lakelsm.format.index.file_index.file_index_container import FileIndexContainer, sealed
from lakelsm.storage import LocalFileIO
from lakelsm.types import parse_columns
from tests.format.manifest.manifest_samples import entry

CONTAINER = FileIndexContainer({"v": {"bitmap": b"x"}}).encode()
FILESYSTEM = LocalFileIO().filesystem()


def _location(folder: Path, *extra: str, embedded: bytes | None = None) -> FileIndexLocation | None:
    file = replace(entry().file, file_name="d.parquet", row_count=3, extra_files=extra, embedded_index=embedded)
    return FileIndexLocation.of(file, str(folder))


def test_indexes_are_embedded_or_in_a_separate_file_or_missing(tmp_path: Path) -> None:
    assert _location(tmp_path) is None
    assert _location(tmp_path, "d.parquet.blob") is None
    (tmp_path / "d.parquet.index").write_bytes(sealed(CONTAINER, "d.parquet"))
    for location in (_location(tmp_path, embedded=CONTAINER), _location(tmp_path, "x.blob", "d.parquet.index")):
        assert location is not None
        assert location.read(FILESYSTEM).null_rows(parse_columns("w INT")[0], True) is None


@pytest.mark.parametrize("name", ["../d.index", ".."])
def test_several_index_files_and_wrong_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CorruptTableError, match=r"names several index files: a\.index, b\.index"):
        _location(tmp_path, "a.index", "b.index")
    if name.endswith("index"):
        with pytest.raises(CorruptTableError, match="not a plain file name"):
            _location(tmp_path, name)


def test_an_index_file_that_is_missing_or_damaged_is_refused_with_both_names(tmp_path: Path) -> None:
    location = _location(tmp_path, "d.parquet.index")
    assert location is not None
    names = f"File index {tmp_path}/d.parquet.index of data file {tmp_path}/d.parquet "
    with pytest.raises(CorruptTableError, match=f"^{names}does not exist.*'file-index.read.enabled' = 'false'"):
        location.read(FILESYSTEM)
    stored = tmp_path / "d.parquet.index"
    for damage in (sealed(CONTAINER, "other.parquet"), CONTAINER[:-3], b""):
        stored.write_bytes(damage)
        with pytest.raises(CorruptTableError, match=f"^{names}"):
            location.read(FILESYSTEM)
    stored.unlink()
    stored.mkdir()
    with pytest.raises(CorruptTableError, match=f"^{names}cannot be read"):
        location.read(FILESYSTEM)


def test_an_embedded_index_that_is_damaged_is_refused_with_the_name_of_its_data_file(tmp_path: Path) -> None:
    location = _location(tmp_path, embedded=b"nothing")
    assert location is not None
    with pytest.raises(CorruptTableError, match=f"^Embedded file index of data file {tmp_path}/d.parquet is truncated"):
        location.read(FILESYSTEM)
