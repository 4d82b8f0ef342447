"""Tables that Java Paimon wrote (releases 1.3 and 2.1): lakelsm returns the rows that Java read, or refuses by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakelsm import Table
from lakelsm.errors import UnsupportedFeatureError
from tests.golden_tables import GoldenTable
from tests.interop.arrow_merge import file_levels
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.value_form import rows_of_notation

Golden = Callable[..., GoldenTable]

#: The feature that each refused table needs, as the refusal names it.
REFUSED = {
    ("all_orc", "2.1"): "lakelsm reads only Parquet",
    ("part", "2.1"): "tables without a primary key",
    ("part2", "2.1"): "tables without a primary key",
    ("postpone", "2.1"): "'bucket' = '-2' (postponed buckets)",
    ("snapseq", "2.1"): "'sequence.snapshot-ordering' = 'true'",
}
SUPPORTED = [
    ("all_parquet", "2.1"),
    ("bloomf", "2.1"),
    ("cl_full_compaction", "2.1"),
    ("cl_input", "2.1"),
    ("conf", "2.1"),
    ("conf2", "2.1"),
    ("dups", "2.1"),
    ("dv_false", "2.1"),
    ("dv_true", "2.1"),
    ("dyn", "2.1"),
    ("longkey_false", "2.1"),
    ("simple", "2.1"),
    ("st_counts_true", "2.1"),
    ("st_first1", "2.1"),
    ("st_full_false", "2.1"),
    ("st_full_true", "2.1"),
    ("st_none_false", "2.1"),
    ("st_none_true", "2.1"),
    ("st_truncate_16__false", "2.1"),
    ("st_truncate_16__true", "2.1"),
    ("st_truncate_2__false", "2.1"),
    ("st_truncate_2__true", "2.1"),
    ("thin", "2.1"),
    ("simple", "1.3"),
]


@pytest.mark.parametrize(("name", "version"), SUPPORTED)
def test_a_golden_table_has_javas_rows_before_and_after_a_full_compaction(
    ours: LakelsmTables, golden: Golden, name: str, version: str
) -> None:
    source = golden(name, version)
    table = ours.table(source.path)
    fields = table.schema.fields
    assert [field.name for field in fields] == [column for column, _ in source.columns]
    expected = rows_of_notation(source.rows, fields)
    assert ours.read_nanos(source.path) == expected

    ours.compact(source.path)

    assert set(file_levels(str(source.path))) <= {table._store().options.num_levels - 1}
    assert ours.read_nanos(source.path) == expected


@pytest.mark.parametrize(("name", "version"), REFUSED)
def test_a_golden_table_with_an_unsupported_feature_is_refused_by_name(golden: Golden, name: str, version: str) -> None:
    source = golden(name, version)
    with pytest.raises(UnsupportedFeatureError) as refusal:
        Table.for_path(str(source.path)).to_arrow()
    assert REFUSED[name, version] in str(refusal.value)


def test_every_golden_table_is_either_read_or_refused(golden: Golden) -> None:
    golden("simple")  # Skips if the golden tables do not exist.
    from tests.golden_tables import VERSIONS, expectations

    tables = {(name, version) for version in VERSIONS for name in expectations(version)}
    assert tables == {*SUPPORTED, *REFUSED}
