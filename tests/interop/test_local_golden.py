"""Tables that Java Paimon wrote, read in this process: the rows that Java read, in any order and in key order."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lakelsm import Table
from tests.compact.local_table import LocalTable
from tests.golden_tables import GoldenTable
from tests.interop.test_java_golden import SUPPORTED
from tests.interop.value_form import rows_of_arrow, rows_of_notation


@pytest.mark.parametrize(("name", "version"), SUPPORTED)
def test_a_golden_table_has_javas_rows_before_and_after_a_compaction(
    golden: Callable[..., GoldenTable], name: str, version: str
) -> None:
    source = golden(name, version)
    table = Table.for_path(str(source.path))
    fields = table.schema.fields
    expected = rows_of_notation(source.rows, fields)
    assert rows_of_arrow(table.to_arrow(), fields) == expected
    assert rows_of_arrow(table.to_arrow(ordered=True), fields) == expected
    assert int(table.count(engine="local")) == len(expected)
    one, other = fields[-1].name, table.schema.primary_keys[0]
    where = f"`{one}` IS NOT NULL"
    at = table.schema.field_names.index(one)
    assert len(table.to_arrow(where, list(dict.fromkeys((other, one))))) == sum(row[at] is not None for row in expected)

    LocalTable(source.path).compact()

    assert rows_of_arrow(table.to_arrow(), fields) == expected
    assert isinstance(table.to_reader(), pa.RecordBatchReader)
