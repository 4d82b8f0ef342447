"""Options of streams of the data source: wrong, unknown and contradicting ones are refused by name, before any row."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from lakelsm import Catalog, Table
from lakelsm.data_source.source import DefaultSource
from lakelsm.data_source.stream_options import StreamOptions
from lakelsm.errors import LakelsmError
from lakelsm.stream.stream_limits import StreamLimits

COLUMNS = {"id": "INT", "n": "INT"}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Catalog(str(tmp_path)).create_table("d.t", COLUMNS, primary_key="id", options={"bucket": "1"})
    table.write([{"id": 1, "n": 1}])
    return table


def given(tmp_path: Path, **options: str) -> dict[str, str]:
    return {"path": str(tmp_path / "d.db" / "t"), **options}


def test_names_have_any_case_and_limits_are_numbers(tmp_path: Path, table: Table) -> None:
    options = StreamOptions.of(
        given(
            tmp_path,
            **{"SCAN.Mode": "Latest", "read.stream.MAXfilesPerTrigger": "2", "read.stream.maxbytespertrigger": "1 kb"},
        )
    )
    assert options.settings == {"scan.mode": "Latest"}
    assert options.limits == StreamLimits(max_files=2, max_bytes=1024)


def test_the_schema_has_the_kind_first_and_the_named_columns(tmp_path: Path, table: Table) -> None:
    def names(**options: str) -> list[str]:
        return DefaultSource(given(tmp_path, **options)).schema().names

    assert names(**{"scan.mode": "latest"}) == ["id", "n"]
    assert names(**{"READ.changelog": "TRUE"}) == ["rowkind", "id", "n"]
    assert names(**{"read.changelog": "true", "columns": "N"}) == ["rowkind", "N"]
    assert names(**{"read.changelog": "false"}) == ["id", "n"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scan.mod": "latest"}, "option 'scan.mod': a stream of format('lakelsm') has no such option. Options: path"),
        ({"snapshot-id": "1"}, "option 'snapshot-id': a stream of format('lakelsm') has no such option"),
        ({"timestamp": "2020-01-01"}, "option 'timestamp'"),
        ({"commit-user": "u"}, "option 'commit-user'"),
        ({"maxFilesPerTrigger": "1"}, "option 'maxfilespertrigger'"),
        ({"path": ""}, "option 'path': the table is missing"),
        ({"columns": "id,,n"}, "option 'columns'"),
        ({"columns": "id,other"}, "other"),
        ({"columns": "id,ID"}, "option 'columns': a column is named twice"),
        ({"columns": "rowkind", "read.changelog": "true"}, "rowkind"),
        ({"where": " "}, "where: expected an SQL condition"),
        ({"where": "id >"}, "cannot parse condition 'id >'"),
        ({"where": "other > 1"}, "other"),
        ({"branch": "none"}, "none"),
        ({"scan.mode": "newest"}, "option 'scan.mode': 'newest' is not one of"),
        ({"scan.mode": "from-snapshot"}, "scan.snapshot-id"),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, "scan.snapshot-id"),
        ({"scan.snapshot-id": "1", "scan.timestamp-millis": "5"}, "scan."),
        ({"scan.snapshot-id": "0"}, "option 'scan.snapshot-id': 0 is less than 1"),
        ({"scan.snapshot-id": "one"}, "option 'scan.snapshot-id'"),
        ({"scan.timestamp": "soon"}, "option 'scan.timestamp'"),
        ({"incremental-between": "1"}, "option 'incremental-between'"),
        ({"scan.mode": "incremental"}, "incremental"),
        ({"consumer-id": "a/b"}, "option 'consumer-id'"),
        ({"consumer-id": ""}, "option 'consumer-id'"),
        ({"consumer.mode": "exactly-once"}, "option 'consumer.mode' needs 'consumer-id'"),
        ({"consumer.ignore-progress": "true"}, "option 'consumer.ignore-progress' needs 'consumer-id'"),
        ({"consumer-id": "a", "consumer.mode": "twice"}, "option 'consumer.mode'"),
        ({"read.changelog": "1"}, "option 'read.changelog'"),
        ({"failOnDataLoss": "maybe"}, "option 'failOnDataLoss'"),
        ({"read.stream.maxFilesPerTrigger": "0"}, "option 'read.stream.maxFilesPerTrigger': '0' is less than 1"),
        ({"read.stream.maxBytesPerTrigger": "-1"}, "option 'read.stream.maxBytesPerTrigger'"),
        ({"read.stream.maxRowsPerTrigger": "1.5"}, "option 'read.stream.maxRowsPerTrigger'"),
        ({"read.stream.minRowsPerTrigger": "5"}, "'read.stream.maxTriggerDelayMs' are set together"),
        ({"read.stream.maxTriggerDelayMs": "5"}, "'read.stream.maxTriggerDelayMs' are set together"),
        (
            {
                "read.stream.minRowsPerTrigger": "5",
                "read.stream.maxTriggerDelayMs": "5",
                "read.stream.maxRowsPerTrigger": "4",
            },
            "option 'read.stream.minRowsPerTrigger': 5 is more than",
        ),
    ],
)
def test_wrong_options_are_refused_by_name(tmp_path: Path, table: Table, options: dict[str, str], message: str) -> None:
    source = DefaultSource(given(tmp_path, **options))
    with pytest.raises(LakelsmError) as error:
        StreamOptions.of(source.options).opened(StreamOptions.of(source.options).struct())
    assert message in str(error.value)


def test_options_of_streams_are_refused_in_batch_reads_and_writes(tmp_path: Path, table: Table) -> None:
    source = DefaultSource(given(tmp_path, **{"scan.mode": "latest"}))
    for call in (lambda: source.reader(source.schema()), lambda: source.writer(source.schema(), False)):
        with pytest.raises(LakelsmError, match=r"option 'scan.mode': a (read|write) of format\('lakelsm'\)"):
            call()


KIND = StructField("rowkind", StringType())
ID, NUMBER = StructField("id", IntegerType()), StructField("n", IntegerType())


@pytest.mark.parametrize(
    ("fields", "options", "message"),
    [
        ([ID, NUMBER], {"read.changelog": "true"}, "no first column 'rowkind'"),
        ([ID, KIND, NUMBER], {"read.changelog": "true"}, "no first column 'rowkind'"),
        ([StructField("rowkind", IntegerType()), ID], {"read.changelog": "true"}, "no first column 'rowkind'"),
        ([], {"read.changelog": "true"}, "no first column 'rowkind'"),
        ([KIND, ID], {}, "column 'rowkind': the table has no such column"),
        ([StructField("id", StringType())], {}, "column 'id': the table has type int, and string is wanted"),
        ([ID, StructField("n", IntegerType(), False)], {}, "column 'n': the schema says NOT NULL"),
        ([ID], {"columns": "n"}, "option 'columns': 'n' are not the columns of the schema"),
    ],
)
def test_a_schema_of_the_user_is_checked(
    tmp_path: Path, table: Table, fields: list[StructField], options: dict[str, str], message: str
) -> None:
    with pytest.raises(LakelsmError) as error:
        StreamOptions.of(given(tmp_path, **options)).opened(StructType(fields))
    assert message in str(error.value)


def test_not_null_columns_are_nullable_in_retractions(tmp_path: Path) -> None:
    columns = "id INT NOT NULL, n INT NOT NULL"
    Catalog(str(tmp_path)).create_table("d.t", columns, primary_key="id", options={"bucket": "1"})
    key, number = StructField("id", IntegerType(), False), StructField("n", IntegerType(), False)
    StreamOptions.of(given(tmp_path)).opened(StructType([key, number]))
    kinds = StreamOptions.of(given(tmp_path, **{"read.changelog": "true"}))
    kinds.opened(StructType([KIND, key, NUMBER]))
    with pytest.raises(LakelsmError, match="column 'n': the schema says NOT NULL, and a row of kind -D"):
        kinds.opened(StructType([KIND, key, number]))


def test_a_column_with_the_name_of_the_kind_is_refused(tmp_path: Path) -> None:
    Catalog(str(tmp_path)).create_table("d.t", {"id": "INT", "RowKind": "INT"}, primary_key="id")
    assert DefaultSource(given(tmp_path)).schema().names == ["id", "RowKind"]
    with pytest.raises(LakelsmError, match=r"option 'read.changelog': the table has a column 'RowKind' itself"):
        DefaultSource(given(tmp_path, **{"read.changelog": "true"})).schema()
