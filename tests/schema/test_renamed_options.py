"""Options that name a column follow its new name."""

from __future__ import annotations

import pytest

from lakelsm.schema.renamed_options import rename_in_options


@pytest.mark.parametrize(
    ("key", "text", "new_key", "new_text"),
    [
        ("bucket-key", "a,b", None, "z,b"),
        ("sequence.field", "b,a", None, "b,z"),
        ("rowkind.field", "a", None, "z"),
        ("record-level.time-field", "a", None, "z"),
        ("partial-update.remove-record-on-sequence-group", "a", None, "z"),
        ("changelog-producer.row-deduplicate-ignore-fields", "b, a", None, "b,z"),
        ("fields.a.aggregate-function", "sum", "fields.z.aggregate-function", "sum"),
        ("fields.b,a.sequence-group", "c,a", "fields.b,z.sequence-group", "c,z"),
        ("fields.b.sequence-group", "a", "fields.b.sequence-group", "z"),
        ("fields.a.nested-key", "a", "fields.z.nested-key", "a"),
        ("fields.a.map.storage-layout", "default", "fields.z.map.storage-layout", "default"),
        ("fields.default-aggregate-function", "a", None, "a"),
        ("bucket-key", "ab,aa", None, "ab,aa"),
        ("my.owner", "a", None, "a"),
    ],
)
def test_a_name_is_replaced_where_the_option_names_columns_and_nowhere_else(
    key: str, text: str, new_key: str | None, new_text: str
) -> None:
    assert rename_in_options({key: text, "bucket": "2"}, "a", "z") == {new_key or key: new_text, "bucket": "2"}
