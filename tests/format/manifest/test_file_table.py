"""Files as an Arrow table: the same from columns of a manifest and from Python objects."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakelsm.format.avro.container import read_container
from lakelsm.format.manifest.columns import EntryColumns
from lakelsm.format.manifest.file_table import FILE_TABLE, file_table
from lakelsm.format.manifest.manifest_file import encode_manifest
from tests.format.manifest.manifest_samples import varied_entries


def test_manifest_columns_and_python_objects_give_the_same_table() -> None:
    entries = varied_entries(200)
    batch = EntryColumns([read_container(encode_manifest(entries), "m")])
    rows = np.array([0, 7, 199, 3])
    assert batch.file_table(rows).to_pylist() == file_table([entries[row].file for row in rows]).to_pylist()


def test_the_table_of_no_files_has_the_same_columns() -> None:
    assert file_table([]).schema == FILE_TABLE
    assert pa.Table.from_batches([file_table([])]).num_rows == 0
