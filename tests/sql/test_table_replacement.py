"""CREATE OR REPLACE TABLE and REPLACE TABLE: the new table, the table after failures, and object stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.errors import (
    InvalidInputError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from lakelsm.sql import table_replacement

KEY = "TBLPROPERTIES ('primary-key' = 'id')"


@pytest.fixture
def c(tmp_path: Path) -> Catalog:
    found = Catalog(str(tmp_path))
    found.sql(f"CREATE OR REPLACE TABLE db.t (id INT, a STRING) {KEY}", engine="local")
    found.sql("INSERT INTO db.t VALUES (1, 'x'), (2, 'y')", engine="local")
    return found


def run(c: Catalog, text: str) -> object:
    return c.sql(text, engine="local")


def test_a_table_is_replaced_by_other_columns_and_by_a_query_on_itself(c: Catalog) -> None:
    run(c, f"CREATE OR REPLACE TABLE db.t {KEY} AS SELECT id + 10 AS id, a || '!' AS b FROM db.t")
    assert c.table("db.t").to_arrow().sort_by("id").to_pydict() == {"id": [11, 12], "b": ["x!", "y!"]}
    run(c, "REPLACE TABLE db.t (k STRING, p INT, PRIMARY KEY (k, p)) PARTITIONED BY (p)")
    assert c.table("db.t").count().rows == 0 and list(c.table("db.t").schema.partition_keys) == ["p"]
    assert c.list_tables() == ["db.t"]


def test_replace_table_needs_a_table(c: Catalog) -> None:
    with pytest.raises(TableNotFoundError, match=r"db\.none"):
        run(c, f"REPLACE TABLE db.none (id INT) {KEY}")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"CREATE OR REPLACE TABLE db.t {KEY} AS SELECT 1 DIV 0 AS id", InvalidInputError),
        ("CREATE OR REPLACE TABLE db.t (id INT)", UnsupportedFeatureError),
        (f"CREATE OR REPLACE TABLE db.t (other INT) {KEY}", InvalidInputError),
    ],
)
def test_a_failure_of_the_new_table_changes_nothing(c: Catalog, text: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        run(c, text)
    assert "_new_" not in str(raised.value)
    assert c.list_tables() == ["db.t"] and c.table("db.t").count().rows == 2


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failure_of_a_rename_changes_nothing(c: Catalog, failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, rename = [], Catalog.rename_table

    def renamed(self: Catalog, name: str, new_name: str) -> object:
        calls.append(name)
        if len(calls) == failing:
            raise TableAlreadyExistsError("there")
        return rename(self, name, new_name)

    monkeypatch.setattr(Catalog, "rename_table", renamed)
    with pytest.raises(TableAlreadyExistsError):
        run(c, f"CREATE OR REPLACE TABLE db.t (id INT) {KEY}")
    assert c.list_tables() == ["db.t"] and c.table("db.t").count().rows == 2


def test_an_old_table_that_cannot_be_deleted_is_named_in_a_warning(c: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Catalog, name: str) -> None:
        raise StorageError("no access.")

    monkeypatch.setattr(Catalog, "drop_table", refused)
    with pytest.warns(UserWarning, match=r"its old files remain: no access\. Drop table db\.t_old_"):
        run(c, f"CREATE OR REPLACE TABLE db.t (id INT) {KEY}")
    assert c.table("db.t").count().rows == 0


def test_an_object_store_cannot_replace_a_table(c: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_replacement, "is_object_uri", lambda uri: True)
    with pytest.raises(UnsupportedFeatureError, match="Use DROP TABLE and CREATE TABLE"):
        run(c, f"CREATE OR REPLACE TABLE db.t (id INT) {KEY}")
    assert c.list_tables() == ["db.t"] and c.table("db.t").count().rows == 2
