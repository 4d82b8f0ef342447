"""Effects of schema changes on columns, ids and options, and refused changes."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.schema.evolution import apply_changes, rename_in_options
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema_changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
)
from lakelsm.types import RowType, parse_type

_INT = parse_type("INT")
_BIGINT = parse_type("BIGINT")


def _schema(options: dict[str, str] | None = None) -> TableSchema:
    return create_schema(
        "dt STRING, k INT, v INT, r ROW<x INT, y STRING>, l ARRAY<INT>, m MAP<STRING, ROW<z INT>>, "
        "n INT NOT NULL",
        ["k", "dt"],
        ["dt"],
        {"bucket": "2", **(options or {})},
    )


def _apply(*changes: SchemaChange, options: dict[str, str] | None = None) -> TableSchema:
    return apply_changes(_schema(options), changes, now_millis=5)


def test_an_added_column_gets_a_new_id_and_the_requested_position() -> None:
    changed = _apply(AddColumn("a", _INT), AddColumn("b", _INT, first=True), AddColumn("c", _INT, after="k"))
    assert changed.field_names == ("b", "dt", "k", "c", "v", "r", "l", "m", "n", "a")
    assert [changed.field(name).id for name in "abc"] == [10, 11, 12]
    assert (changed.id, changed.highest_field_id, changed.time_millis) == (1, 12, 5)


def test_members_of_an_added_row_have_their_ids_after_the_members_within_them() -> None:
    changed = _apply(AddColumn("a", parse_type("ROW<o ROW<i INT, j ARRAY<ROW<e INT>>>, p INT>")), AddColumn("b", _INT))
    outer = changed.field("a").type
    assert isinstance(outer, RowType) and isinstance(outer.fields[0].type, RowType)
    inner = outer.fields[0].type
    assert [changed.field("a").id, *(field.id for field in outer.fields)] == [10, 14, 15]
    assert [field.id for field in inner.fields] == [11, 13]
    assert changed.field("b").id == changed.highest_field_id == 16


def test_a_dropped_columns_id_is_not_used_again() -> None:
    changed = _apply(DropColumn("n"), AddColumn("n", _INT))
    assert changed.field("n").id == 10


def test_columns_can_be_added_before_the_partition_columns() -> None:
    changed = _apply(AddColumn("a", _INT), options={"add-column-before-partition": "true"})
    assert changed.field_names[:2] == ("a", "dt")


def test_a_renamed_column_keeps_its_id_and_its_options() -> None:
    changed = _apply(
        RenameColumn("v", "w"),
        RenameColumn(("k",), "key"),
        options={"sequence.field": "n,v", "bucket-key": "k", "fields.v.stats-mode": "none"},
    )
    assert changed.field("w").id == _schema().field("v").id
    assert changed.primary_keys == ("key", "dt")
    assert changed.options == {
        "bucket": "2",
        "sequence.field": "n,w",
        "bucket-key": "key",
        "fields.w.stats-mode": "none",
    }


def test_types_widen_and_keep_their_nullability() -> None:
    changed = _apply(UpdateColumnType("n", _BIGINT), UpdateColumnType("v", parse_type("BIGINT NOT NULL")))
    assert (changed.field("n").type.sql(), changed.field("v").type.sql()) == ("BIGINT NOT NULL", "BIGINT")


def test_nested_parts_change_by_path() -> None:
    changed = _apply(
        AddColumn(("r", "w"), _INT, first=True),
        RenameColumn(("r", "y"), "why"),
        UpdateColumnType(("r", "x"), _BIGINT),
        UpdateColumnType(("l", "element"), _BIGINT),
        DropColumn(("r", "why")),
        AddColumn(("m", "value", "u"), _INT),
    )
    assert changed.field("r").type.sql() == "ROW<`w` INT, `x` BIGINT>"
    assert changed.field("l").type.sql() == "ARRAY<BIGINT>"
    assert changed.field("m").type.sql() == "MAP<STRING, ROW<`z` INT, `u` INT>>"
    assert changed.highest_field_id == 11


def test_comments_positions_and_options_change() -> None:
    changed = _apply(
        UpdateComment("table"),
        UpdateColumnComment("v", "col"),
        MoveColumn("n", after="dt"),
        MoveColumn("l", first=True),
        SetOption("write-only", "true"),
        UpdateColumnNullability("n", True),
    )
    assert (changed.comment, changed.field("v").description) == ("table", "col")
    assert changed.field_names == ("l", "dt", "n", "k", "v", "r", "m")
    assert changed.options["write-only"] == "true"
    assert changed.field("n").type.nullable
    assert "write-only" not in apply_changes(changed, [RemoveOption("write-only")], 6).options


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (AddColumn("v", _INT), "already exists"),
        (AddColumn("a", parse_type("INT NOT NULL")), "NOT NULL"),
        (AddColumn("a", _INT, after="x"), "column 'x' does not exist"),
        (AddColumn("_LEVEL", _INT), "is reserved"),
        (AddColumn("a", parse_type("ROW<x INT, x INT>")), "duplicate"),
        (AddColumn(("v", "x"), _INT), "no part 'x'"),
        (AddColumn(("l", "element"), _INT), "already exists"),
        (DropColumn("x"), "column 'x' does not exist"),
        (DropColumn("k"), "primary key"),
        (DropColumn("dt"), "partition"),
        (DropColumn(("l", "element")), "only one"),
        (RenameColumn("dt", "day"), "partition"),
        (RenameColumn("v", "k"), "already exists"),
        (RenameColumn(("l", "element"), "e"), "element"),
        (UpdateColumnType("k", _BIGINT), "primary key"),
        (UpdateColumnType("v", parse_type("STRING")), "without loss of values"),
        (UpdateColumnType("v", parse_type("SMALLINT")), "without loss of values"),
        (UpdateColumnType("r", parse_type("ROW<x BIGINT>")), "one by one"),
        (UpdateColumnNullability("v", False), "NOT NULL"),
        (UpdateColumnNullability("k", True), "primary key"),
        (SetOption("bucket", "-1"), "bucket"),
        (SetOption("merge-engine", "aggregation"), "merge-engine"),
        (SetOption("write-onyl", "true"), "write-only"),
        (SetOption("sequence.field", "x"), "column 'x' does not exist"),
        (RemoveOption("bucket"), "bucket"),
    ],
    ids=str,
)
def test_a_change_that_paimon_forbids_is_refused(change: SchemaChange, reason: str) -> None:
    before = _schema()
    with pytest.raises(InvalidInputError, match=reason):
        apply_changes(before, [change], 5)
    assert before == _schema()


def test_a_sequence_column_cannot_be_dropped() -> None:
    with pytest.raises(InvalidInputError, match=r"sequence\.field"):
        _apply(DropColumn("v"), options={"sequence.field": "v"})


def test_immutable_options_may_change_before_the_table_has_data() -> None:
    changed = apply_changes(_schema(), [SetOption("bucket", "-1")], 5, has_snapshots=False)
    assert changed.options["bucket"] == "-1"


def test_an_unsupported_feature_cannot_be_enabled() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"file\.format\.per\.level"):
        _apply(SetOption("file.format.per.level", "0:avro"))


def test_a_table_with_keys_of_other_engines_can_change() -> None:
    assert _apply(AddColumn("a", _INT), options={"other.engine": "x"}).id == 1


def test_null_to_not_null_is_possible_with_the_option() -> None:
    options = {"alter-column-null-to-not-null.disabled": "false"}
    assert not _apply(UpdateColumnNullability("v", False), options=options).field("v").type.nullable


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
def test_a_column_is_renamed_only_in_options_that_name_columns(
    key: str, text: str, new_key: str | None, new_text: str
) -> None:
    assert rename_in_options({key: text, "bucket": "2"}, "a", "z") == {new_key or key: new_text, "bucket": "2"}
