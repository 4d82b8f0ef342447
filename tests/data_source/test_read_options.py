"""Options of the data source: each has an effect, and wrong ones are refused with their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog, Table
from lakelsm.data_source.read_options import ReadOptions
from lakelsm.errors import InvalidInputError, LakelsmError


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", {"id": "INT", "n": "INT"}, primary_key="id", options={"bucket": "1"})
    table.write([{"id": 1, "n": 1}])
    table.tags.create("first", 1)
    table.branches.create("b", "first")
    table.write([{"id": 2, "n": 2}])
    return table


def rows(tmp_path: Path, **options: str) -> list[dict[str, object]]:
    given = {"path": str(tmp_path / "d.db" / "t")} | {name.replace("_", "-"): value for name, value in options.items()}
    return ReadOptions.of(given).opened().to_arrow(ordered=True).to_pylist()


def test_each_option_selects_a_state_of_the_table(tmp_path: Path, table: Table) -> None:
    first, both = [{"id": 1, "n": 1}], [{"id": 1, "n": 1}, {"id": 2, "n": 2}]
    assert rows(tmp_path) == both
    assert rows(tmp_path, path="d.t", warehouse=str(tmp_path)) == both
    assert rows(tmp_path, snapshot_id="1") == rows(tmp_path, tag_name="first") == rows(tmp_path, branch="b") == first
    assert rows(tmp_path, timestamp="2999-01-01 00:00:00") == both
    assert rows(tmp_path, Snapshot_ID="1") == first
    assert rows(tmp_path, path=(tmp_path / "d.db" / "t").as_uri()) == both


def test_columns_and_conditions_are_kept_as_they_are_written() -> None:
    options = ReadOptions.of({"path": "p", "columns": "ID , s", "where": "id > 1"})
    assert (options.columns, options.where) == (("ID", "s"), "id > 1")


def test_settings_of_an_object_store_are_passed_on_and_not_shown() -> None:
    options = ReadOptions.of({"path": "s3://b/t", "fs.s3a.secret.key": "hush", "aws_region": "eu-west-1"})
    assert options.location.storage == {"fs.s3a.secret.key": "hush", "AWS_REGION": "eu-west-1"}
    assert "hush" not in repr(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colums": "a"}, "option 'colums': a read of format('lakelsm') has no such option. Options: path, warehouse"),
        ({"paths": '["a", "b"]'}, "option 'paths'"),
        ({"path": " "}, "option 'path': the table is missing"),
        ({"snapshot-id": "1", "tag-name": "x"}, "options 'snapshot-id' and 'tag-name' exclude each other"),
        ({"columns": "a,,b"}, "option 'columns': 'a,,b' has an empty name"),
        ({"branch": "a/b"}, "option 'branch'"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        ReadOptions.of({"path": "p", **options})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot_id": "-1"}, "option 'snapshot-id': '-1' is not the id of a snapshot."),
        ({"snapshot_id": "0"}, "option 'snapshot-id': 0 is less than 1."),
        ({"snapshot_id": "99"}, "snapshot 99"),
        ({"tag_name": " "}, "option 'tag-name': expected the name of a tag"),
        ({"tag_name": "x"}, "x"),
        ({"timestamp": "soon"}, "option 'timestamp'"),
        ({"branch": "other"}, "other"),
        ({"fs.s3a.endpoint": "x"}, "storage_options"),
        ({"path": "d.none", "warehouse": "."}, "d.none"),
    ],
)
def test_wrong_values_are_refused_when_the_table_is_opened(
    tmp_path: Path, table: Table, options: dict[str, str], message: str
) -> None:
    with pytest.raises(LakelsmError) as error:
        rows(tmp_path, **options)
    assert message in str(error.value)
