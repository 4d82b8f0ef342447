"""On a full disk the error names the cause and the remedy, and no file is left."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.environment import SYSTEM
from lakelsm.errors import StorageError
from lakelsm.format.data_file.rolling_writer import RollingWriter
from lakelsm.format.file_names import AttemptNames, FileNames
from lakelsm.schema.table_schema import create_schema
from tests.format.data_file.full_disk import FullDisk
from tests.merge.run_files import layout_of, rows_table

SCHEMA = create_schema("k INT, v STRING", ["k"], (), {"bucket": "1"})


def batch(first: int) -> pa.Table:
    keys = range(first, first + 300)
    return rows_table(SCHEMA, [(key, 0, {"k": key, "v": f"{key * 7919 % 1_000_003:x}" * 9}) for key in keys])


@pytest.mark.parametrize("room", [0, 3, 500, 5_000, 12_000, 40_000])
@pytest.mark.parametrize("fails_on_close", [True, False])
def test_a_writer_leaves_no_file_on_a_full_disk(room: int, fails_on_close: bool, tmp_path: Path) -> None:
    layout = layout_of(SCHEMA, target_file_size=10_000, row_group_bytes=2_000)
    disk = FullDisk(room, fails_on_close)
    writer = RollingWriter(disk, str(tmp_path), FileNames("u"), layout, level=0, file_source=0)  # type: ignore[arg-type]
    with pytest.raises(StorageError) as raised:
        for first in range(0, 6_000, 300):
            writer.write(batch(first))
        writer.close()
    assert f"{tmp_path}/data-u-" in str(raised.value)
    assert "No space left on device; " in str(raised.value) and "bytes are free there" in str(raised.value)
    assert "Nothing of this commit is visible. Free space on that file system, and run it again." in str(raised.value)
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def test_the_names_of_files_identify_their_job() -> None:
    names, others = AttemptNames.new(SYSTEM.new_uuid), AttemptNames.new(SYSTEM.new_uuid)
    made = [FileNames(names.uuid()).next("data-") for _ in range(50)]
    assert len(set(made)) == 50
    assert all(map(names.owns, made)) and not any(map(others.owns, made))
    assert len(names.uuid()) == 36 and names.uuid()[14] == "4", "still a random uuid, as Java's are"
