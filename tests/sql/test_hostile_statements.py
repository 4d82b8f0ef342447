"""Wrong and hostile statements: one typed error each, and nothing changes. Names and values stay names and values."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.errors import (
    InvalidInputError,
    LakelsmError,
    SnapshotNotFoundError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tests.engines import ON_SPARK, TableEngine

Rows = list[tuple[object, ...]]


def rows(found: Any) -> Rows:
    table: pa.Table = found.toArrow() if hasattr(found, "toArrow") else found.to_arrow()
    return list(zip(*(column.to_pylist() for column in table.columns)))


def small(warehouse: Path, spark: Any = None) -> Catalog:
    """Return a catalog with tables u and w of two rows, p with partitions, and one with names that are keywords."""
    c = Catalog(str(warehouse), spark)
    for text in (
        "CREATE TABLE db.u (k INT, v STRING) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')",
        "CREATE TABLE db.w (k INT, v STRING) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')",
        "CREATE TABLE db.p (id INT, v STRING, p STRING) PARTITIONED BY (p) TBLPROPERTIES ('primary-key' = 'id,p')",
        "CREATE TABLE db.`select` (`from` INT, `a b` STRING, `;--` STRING) TBLPROPERTIES ('primary-key' = 'from')",
        "INSERT INTO db.u VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO db.w VALUES (1, 'W'), (3, 'three')",
        "INSERT INTO db.p VALUES (1, 'a', 'x'), (2, 'b', 'y')",
        "INSERT INTO db.`select` VALUES (1, 'q', ';')",
        "ALTER TABLE db.u CREATE TAG t1",
    ):
        c.sql(text, engine="local")
    return c


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Catalog, Path]:
    warehouse = tmp_path_factory.mktemp("hostile")
    return small(warehouse), warehouse


def files(warehouse: Path) -> list[Path]:
    return sorted(path for path in warehouse.rglob("*") if path.is_file())


def nested(text: str, levels: int, inner: str) -> str:
    return text * levels + inner + ")" * levels


LONG = "9" * 5000
#: Statements that are refused on both engines, before Spark reads their text.
REFUSED = {
    "SELECT * FROM db.u; DROP TABLE db.u": "expected one statement, found 2",
    "INSERT INTO db.u VALUES (9, 'x'); DROP TABLE db.u": "expected one statement",
    "SELECT * FROM db.`../u`": "cannot contain a dot",
    "SELECT * FROM db.``": "not blank",
    f"SELECT * FROM db.`{'x' * 5000}`": "at most 255 bytes",
    "SELECT * FROM db.'u'": "expected a name",
    "SELECT * FROM csv.`/etc/passwd`": "without a slash",
    "SELECT * FROM db.u VERSION AS OF '²'": "tag '²' does not exist",
    f"SELECT * FROM db.u VERSION AS OF '{LONG}'": "does not exist",
    f"SELECT * FROM db.u VERSION AS OF {LONG}": "is too long",
    "SELECT * FROM db.u VERSION AS OF 1 VERSION AS OF 1": "column 36: the table has another version",
    "WITH x AS (SELECT 1) SELECT * FROM x VERSION AS OF 1": "'x' is a common table expression",
    "SELECT * FROM db.u VERSION AS OF 1 /*+ OPTIONS('scan.snapshot-id' = '1') */": "AS OF and a hint",
    "SELECT * FROM db.u /*+ OPTIONS('scan.snapshot-id' = '1', 'scan.snapshot-id' = '1') */": "an option twice",
    "SELECT * FROM db.u /*+ OPTIONS('scan.snapshot-id' = '١') */": "not a snapshot id",
    "SELECT * FROM db.u /*+ OPTIONS('deletion-vectors.merge-on-read' = 'x') */": "neither 'true' nor 'false'",
    "SELECT * FROM paimon_incremental_query('db.u',, 0, 1)": "separated by commas",
    "SELECT * FROM paimon_incremental_query('db.u' 0 1)": "separated by commas",
    "SELECT * FROM paimon_incremental_query('db.u', NULL, 1)": "takes texts and unsigned numbers",
    "SELECT * FROM paimon_incremental_query()": "a table's name as text, a start and an end",
    f"SELECT * FROM paimon_incremental_between_timestamp('db.u', 0, {'9' * 25})": "after the year 9999",
    "SELECT * FROM paimon_incremental_between_timestamp('db.u', 't1', 't1')": "'t1' is not a point in time",
    "SELECT * FROM paimon_incremental_to_auto_tag('db.u', 't1')": "has no name of an automatic tag",
    "SELECT * FROM paimon_incremental_to_auto_tag('db.u', '2024-01-01')": "tag '2024-01-01' does not exist",
    "INSERT INTO db.p PARTITION (p = 'x' OR '1' = '1') VALUES (9, 'q')": "is not a literal",
    "INSERT INTO db.u (k, K) VALUES (1, 2)": "given twice",
    "INSERT INTO db.`u$snapshots` VALUES (1)": "names a system table",
    "DROP TABLE db.`u$branch_main`": "is a branch",
    "DROP TABLE IF EXISTS db.`u$branch_main`": "is a branch",
    "DROP TABLE db.`u$branch_b`": "is a branch",
    "ALTER TABLE db.`u$branch_main` RENAME TO x": "is a branch",
    "ALTER TABLE db.u RENAME TO `x$branch_main`": "is a branch",
    "CREATE TABLE db.`x$branch_main` LIKE db.u": "is a branch",
    f"CALL sys.compact('db.u', buckets => '{','.join(['0-99999'] * 50)}')": "19, 20 and 99979 more do not exist",
    "DELETE FROM db.u WHERE k IN (SELECT k FROM db.w)": "a query within",
    "DELETE FROM db.u WHERE EXISTS (TABLE db.w)": "a query within",
    "UPDATE db.u SET v = 'x' WHERE k IN (VALUES 1)": "a query within",
    "UPDATE db.u SET v = (FROM db.w)": "a query within",
    "MERGE INTO db.u USING db.w ON u.k = w.k AND EXISTS (TABLE db.p) WHEN MATCHED THEN DELETE": "a query within",
    "MERGE INTO db.u USING db.w ON u.k IN (FROM db.p) WHEN MATCHED THEN DELETE": "a query within",
    "MERGE INTO db.u USING db.w ON u.k = w.k WHEN MATCHED AND `_key__MERGE_IN_TARGET` THEN DELETE": "does not exist",
    "CREATE TABLE db.x (a INT, PRIMARY KEY (a), PRIMARY KEY (a))": "as the table has a primary key",
    "CREATE TABLE db.x (a INT, PRIMARY KEY (a)) COMMENT 'x' COMMENT 'y'": "COMMENT, which is given twice",
    "CREATE TABLE db.x (a INT NOT NULL NOT NULL, PRIMARY KEY (a))": "NOT, which is given twice",
    "CREATE TABLE db.x LIKE db.u PARTITIONED BY (k)": "has the partitions of the other table",
    "CREATE TABLE db.x LIKE db.u TBLPROPERTIES ('primary-key' = 'v')": "'primary-key' is that of the other table",
    "ALTER TABLE db.u SET TBLPROPERTIES ('primary-key' = 'v')": "'primary-key' cannot change",
    "ALTER TABLE db.u UNSET TBLPROPERTIES ('primary-key')": "'primary-key' cannot change",
    "ALTER TABLE db.u DELETE TAG `t1,none`": "tag 'none' does not exist",
    "ALTER TABLE db.p DROP PARTITION (p = '\\' OR TRUE --')": "compares partition columns",
    "SHOW TABLES IN none": "Database none does not exist",
    "CALL sys.compact(table => 'db.u', where => '1=1) OR (TRUE')": "cannot parse condition",
    "CALL sys.compact(table => 'db.u', table => 'db.w')": "given twice",
    "CALL sys.compact('db.u', table => 'db.w')": "given twice",
    "CALL sys.delete_tag('db.u', 't1,none')": "tag 'none' does not exist",
    "CALL sys.expire_tags('db.u', 0)": "older_than is 0, and text is expected",
    "CALL sys.create_tag('db.u', 1.5)": "tag is 1.5, and text is expected",
    "CALL sys.create_tag('db.u', NULL)": "needs the argument tag",
    "CALL sys.rollback_to_timestamp('db.u', 99999999999999999999)": "after the year 9999",
    "CALL sys.rollback_to_timestamp('db.u', 't1')": "'t1' is not a point in time",
    f"CALL sys.rollback('db.u', '{LONG}')": "at most 251 bytes",
    f"CALL sys.expire_snapshots('db.u', {LONG})": "is too long",
    "CALL sys.expire_snapshots('db.u', -1)": "retain_max: -1 is less than 1",
    f"SELECT {LONG}": "is too long",
    "SELECT 1e99999999999BD": "is too long",
    "SELECT " + nested("(", 100_000, "1"): "nested too deeply",
    "SELECT * FROM " + nested("(", 300, "db.u"): "nested too deeply",
    "SELECT * FROM " + nested("(SELECT * FROM ", 300, "db.u"): "nested too deeply",
    "/*" * 100_000: "has no closing",
}
#: Statements that this process refuses; Spark has its own messages for them.
REFUSED_HERE = {
    "SELECT '\\uD800'": r"\\uD800 in a text",
    "SELECT '\\U00110000'": r"\\U00110000 in a text",
    "SELECT 1e999999BD": "does not fit DECIMAL",
    "SELECT 1e39F": "does not fit FLOAT",
    "SELECT " + nested("(", 400, "1"): "nested too deeply",
    "SELECT " + nested("abs(", 400, "1"): "nested too deeply",
    "SELECT " + "NOT " * 1000 + "TRUE": "nested too deeply",
    **{f"SELECT * FROM db.u LIMIT {each}": "number of INT" for each in ("99999999999", "1L", "'1'", f"'{LONG}'")},
    "SELECT * EXCEPT (none) FROM db.u": "column 'none' does not exist",
    "SELECT k FROM db.u HAVING k > 1": "neither in GROUP BY",
    "SELECT k FROM db.u WHERE row_number() OVER (ORDER BY k) = 1": "has a window function",
    "VALUES ()": "has no values",
    "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a": "Table default.b does not exist",
    "SELECT k FROM db.u, db.w": "'k' is ambiguous",
}


@pytest.mark.parametrize("text", [*REFUSED, *REFUSED_HERE], ids=lambda text: text[:80])
def test_a_refused_statement_is_one_typed_error_and_changes_nothing(shared: tuple[Catalog, Path], text: str) -> None:
    catalog, warehouse = shared
    before = files(warehouse)
    with pytest.raises((InvalidInputError, UnsupportedFeatureError), match={**REFUSED, **REFUSED_HERE}[text]):
        rows(catalog.sql(text, engine="local"))
    assert files(warehouse) == before


@ON_SPARK
def test_spark_refuses_the_same_statements_and_keeps_no_view(tmp_path: Path, engine: TableEngine) -> None:
    spark = engine.spark
    assert spark is not None
    c = small(tmp_path, spark)
    views, before = {each.name for each in spark.catalog.listTables()}, files(tmp_path)
    wrong = {}
    for text, problem in REFUSED.items():
        try:
            rows(c.sql(text, engine="spark"))
        except (InvalidInputError, UnsupportedFeatureError) as error:
            if re.search(problem, str(error)) is None:
                wrong[text[:80]] = str(error)
        else:
            wrong[text[:80]] = "not refused"
    assert wrong == {}
    with pytest.raises(TableNotFoundError, match="TABLE_OR_VIEW_NOT_FOUND"):
        c.sql("SELECT * FROM db.none", engine="spark")
    with pytest.raises(InvalidInputError, match=r"DIVIDE_BY_ZERO"):
        c.sql("CREATE TABLE nodb.x TBLPROPERTIES ('primary-key' = 'a') AS SELECT k / 0 AS a FROM db.u", engine="spark")
    lazy = c.sql("SELECT count(*) FROM db.u, f", engine="spark", f=pa.table({"a": [1, 2, 3]}))
    assert rows(lazy) == [(6,)]
    assert {each.name for each in spark.catalog.listTables()} == views
    assert files(tmp_path) == before
    assert c.list_databases() == ["db"]


#: Queries in which names and texts look like something else, with their rows.
MISLEADING = {
    "SELECT `from`, `a b` FROM db.`select` WHERE `;--` = ';'": [(1, "q")],
    "SELECT 'x; DROP TABLE db.u --' AS q": [("x; DROP TABLE db.u --",)],
    "SELECT k FROM db.u -- ; DROP TABLE db.u\n WHERE k = 1": [(1,)],
    "SELECT '{k}' AS a, '}' AS b, k FROM db.u WHERE k = 1": [("{k}", "}", 1)],
    "WITH lakelsm_table_0_ AS (SELECT 7 AS x) SELECT k, x FROM db.u, lakelsm_table_0_ WHERE k = 1": [(1, 7)],
    "WITH table0 AS (SELECT 7 AS k, 'x' AS v) SELECT u.k, table0.k FROM db.u, table0 WHERE u.k = 1": [(1, 7)],
    "WITH u AS (SELECT 9 AS k) SELECT k FROM u": [(9,)],
    "WITH u AS (SELECT 9 AS k) SELECT k FROM db.u WHERE k = 1": [(1,)],
    "WITH U AS (SELECT 9 AS k) SELECT k FROM u": [(9,)],
    "WITH `u$snapshots` AS (SELECT 1 AS z) SELECT z FROM `u$snapshots`": [(1,)],
    "WITH f AS (SELECT 5 AS a) SELECT a FROM f": [(5,)],
    "SELECT (WITH u AS (SELECT 5 AS k) SELECT k FROM u) AS z, k FROM db.u WHERE k = 2": [(5, 2)],
    "SELECT db.k FROM db.u AS db WHERE db.k = 2": [(2,)],
    "SELECT u.k FROM db.w AS u WHERE u.k = 3": [(3,)],
    "SELECT a FROM f WHERE a = 8": [(8,)],
    "SELECT k FROM paimon_incremental_query('db.u', '0', '1') WHERE k = 1": [(1,)],
    "SELECT k FROM paimon_incremental_query('db.u', 0, 't1') WHERE k = 1": [(1,)],
    f"SELECT length('{'x' * 1_000_000}') AS n": [(1_000_000,)],
    f"SELECT k FROM db.u WHERE k IN ({', '.join(map(str, range(2, 2000)))})": [(2,)],
    "SELECT 1 AS a " + "/*" * 500 + "*/" * 500: [(1,)],
}


def test_names_and_texts_are_not_read_as_something_else(tmp_path: Path, engine: TableEngine) -> None:
    c = small(tmp_path, engine.spark)
    frame = pa.table({"a": [8]})
    found = {text: rows(c.sql(text, engine=engine.name, f=frame)) for text in MISLEADING}
    assert {text: value for text, value in found.items() if value != MISLEADING[text]} == {}


def test_long_conditions_are_read_in_linear_time(tmp_path: Path) -> None:
    c = small(tmp_path)
    long = " OR ".join(f"u.k = {key}" for key in range(5, 8000))
    assert c.sql(f"DELETE FROM db.u WHERE {long}", engine="local").matched_rows == 0
    c.sql("CREATE TABLE db.q (k INT, `a``b` INT) TBLPROPERTIES ('primary-key' = 'k')", engine="local")
    assert c.sql("DELETE FROM db.q AS `x``y` WHERE `x``y`.`a``b` = 1", engine="local").matched_rows == 0


def test_rows_of_values_are_written_as_one_relation(tmp_path: Path) -> None:
    c = small(tmp_path)
    values = ", ".join(f"({key}, 'v{key}')" for key in range(10, 3010))
    assert c.sql(f"INSERT INTO db.u VALUES {values}", engine="local").rows == 3000
    assert rows(c.sql("SELECT count(*), max(k) FROM db.u", engine="local")) == [(3002, 3009)]


def test_drop_column_if_exists_ignores_columns_that_do_not_exist(tmp_path: Path) -> None:
    c = small(tmp_path)
    c.sql("ALTER TABLE db.p ADD COLUMN s STRUCT<a: INT, b: INT>", engine="local")
    c.sql("ALTER TABLE db.p DROP COLUMN IF EXISTS s.nothing, s.a, nothing.b", engine="local")
    assert c.table("db.p").schema.field("s").type.sql() == "ROW<`b` INT>"
    c.sql("ALTER TABLE db.p DROP COLUMNS IF EXISTS (nothing, v)", engine="local")
    found = c.sql("ALTER TABLE db.p DROP COLUMN IF EXISTS v", engine="local")
    assert list(found.schema.field_names) == ["id", "p", "s"]
    with pytest.raises(LakelsmError, match="'v' does not exist"):
        c.sql("ALTER TABLE db.p DROP COLUMN v", engine="local")


def test_times_of_procedures_are_texts_or_milliseconds(tmp_path: Path) -> None:
    c = small(tmp_path)
    c.sql("CALL sys.create_tag_from_timestamp('db.u', 'early', '2000-01-01')", engine="local")
    c.sql("CALL sys.create_tag_from_timestamp('db.u', 'number', 1)", engine="local")
    assert rows(c.sql("SHOW TAGS db.u", engine="local")) == [("early",), ("number",), ("t1",)]
    c.sql("INSERT INTO db.u VALUES (5, 'five')", engine="local")
    c.sql("RESTORE TABLE db.u TO TIMESTAMP AS OF '2999-01-01 00:00:00'", engine="local")
    assert rows(c.sql("SELECT max(k) FROM db.u", engine="local")) == [(5,)]
    c.sql("RESTORE TABLE db.u TO VERSION AS OF 1", engine="local")
    assert rows(c.sql("SELECT max(k) FROM db.u", engine="local")) == [(2,)]


def test_threads_share_a_catalog_and_a_session(tmp_path: Path, engine: TableEngine) -> None:
    c = small(tmp_path, engine.spark)
    found: dict[int, Rows] = {}

    def work(thread: int) -> None:
        c.sql(f"INSERT INTO db.w VALUES ({thread}, 'by a thread')", engine=engine.name)
        frame = pa.table({"a": list(range(thread))})
        found[thread] = rows(
            c.sql(f"SELECT count(*), max(v) FROM db.w, f WHERE k = {thread}", engine=engine.name, f=frame)
        )

    threads = [Thread(target=work, args=(10 + at,)) for at in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {at: [(at, "by a thread")] for at in (10, 11)}


def test_a_result_whose_snapshot_has_expired_is_one_typed_error(tmp_path: Path) -> None:
    c = small(tmp_path)
    kept = c.sql("SELECT k, v FROM db.w ORDER BY k", engine="local")
    metadata = c.sql("SELECT count(*) FROM db.`w$snapshots`", engine="local")
    c.sql("UPDATE db.w SET v = 'new'", engine="local")
    assert rows(kept) == [(1, "W"), (3, "three")]
    c.sql("INSERT OVERWRITE db.w VALUES (9, 'other')", engine="local")
    c.sql("CALL sys.expire_snapshots('db.w', 1, 1)", engine="local")
    for read in (kept.to_arrow, kept.to_pandas, kept.show, kept.__repr__):
        with pytest.raises(SnapshotNotFoundError, match=r"Table db\.w: snapshot 1 was deleted while it was read"):
            read()
    assert rows(metadata) == [(1,)]
    dropped = c.sql("SELECT k FROM db.w", engine="local")
    c.sql("DROP TABLE db.w", engine="local")
    with pytest.raises(TableNotFoundError, match=r"Table db\.w does not exist"):
        dropped.to_arrow()
