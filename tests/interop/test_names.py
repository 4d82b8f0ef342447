"""Names of all kinds, and keys that lack a partition column: Java Paimon and lakelsm read the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import Peer
from tests.interop.samples import rows_of


@pytest.mark.parametrize("prefix", ["_x", ".x %", "dätä-"])
def test_files_and_columns_of_any_name_have_their_rows(
    ours: LakelsmTables, java: Peer, path: Path, prefix: str
) -> None:
    columns = "`a.b` INT, `_metadata` STRING, `_tmp_metadata_row_index` STRING, `_p` STRING, `${x}` STRING"
    names = ("a.b", "_metadata", "_tmp_metadata_row_index", "_p", "${x}")
    first = rows_of(columns, dict(zip(names, ([1, 2], ["a", "b"], ["c", "d"], ["_", "."], ["e", "f"]))))
    second = rows_of(columns, dict(zip(names, ([2, 3], ["g", "h"], ["i", "j"], [".", "{*}"], ["k", "l"]))))
    java.create(path, columns, ["a.b", "_p"], ["_p"], options={"bucket": "1", "data-file.prefix": prefix})
    java.write(path, first)
    java.write(path, second)
    assert ours.read(path) == java.read(path)
    ours.write(path, first)
    assert ours.read(path) == java.read(path)
    ours.compact(path)
    java.write(path, second)
    assert ours.read(path) == java.read(path)


def test_a_key_that_lacks_a_partition_column_has_a_row_in_each_partition(
    either: LakelsmTables, java: Peer, path: Path
) -> None:
    columns = "k INT, p STRING, v INT"
    batches = [rows_of(columns, {"k": [1, 2], "p": p, "v": [1, 2]}) for p in (["a", "a"], ["b", "a"])]
    theirs = path.with_name(f"{path.name}_of_java")
    with pytest.raises(InvalidInputError, match=r"lacks the partition columns \['p'\]"):
        either.create(path, columns, ["k"], ["p"], options={"bucket": "2"})
    either.create(path, columns, ["k"], ["p"], options={"bucket": "2", "lakelsm.key-per-partition": "true"})
    java.create(theirs, columns, ["k"], ["p"], options={"bucket": "2"})
    for where, engine in ((path, either), (theirs, java)):
        for batch in batches:
            engine.write(where, batch)
    assert either.read(path) == java.read(path) == either.read(theirs) == java.read(theirs)
    assert len(either.read(path)) == 3
    for where, engine in ((path, java), (theirs, either)):
        engine.write(where, batches[0])
    assert either.read(path) == java.read(path) == either.read(theirs) == java.read(theirs)
