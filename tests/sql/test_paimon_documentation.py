"""The table of docs/sql.md on Paimon's pages: what works or differs has these rows, and what is refused is an error."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError, UnsupportedFeatureError
from lakelsm.sql.procedures import PROCEDURES, UNSUPPORTED
from tests.sql.statements import Step
from tests.sql.test_each_statement import is_as_expected

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
SET_UP = (
    "CREATE TABLE t (id INT, v STRING, s STRUCT<f1: STRING, f2: INT>) "
    "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'tag.creation-period' = 'daily')",
    "CREATE TABLE p (id INT, pt STRING) PARTITIONED BY (pt) TBLPROPERTIES ('primary-key' = 'id,pt', 'bucket' = '1')",
    "CREATE TABLE target (a INT, b INT, c STRING) TBLPROPERTIES ('primary-key' = 'a', 'bucket' = '1')",
    "CREATE TABLE nested (k INT, v ARRAY<STRUCT<f1: STRING, f2: INT>>, m MAP<INT, STRUCT<f1: STRING, f2: INT>>) "
    "TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')",
    "CREATE TABLE events (k INT, at DATE) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')",
    "INSERT INTO p VALUES (1, 'p1'), (2, 'p2')",
    "INSERT INTO t (id, v) VALUES (1, 'a')",
)
_ROWS_OF_P = "SELECT id, pt FROM p ORDER BY id"
_SOURCE = "(SELECT * FROM VALUES {} AS x({})) source"
#: Statements by the text of their row, without its marks.
STATEMENTS: dict[str, list[Step | str]] = {
    "DDL: USE": ["USE paimon.default"],
    "CREATE TABLE with columns, PARTITIONED BY, TBLPROPERTIES, COMMENT": [
        "CREATE TABLE u (k BIGINT COMMENT 'key', dt STRING, hh STRING) USING paimon PARTITIONED BY (dt, hh) "
        "TBLPROPERTIES ('primary-key' = 'dt,hh,k') COMMENT 'c'"
    ],
    "CREATE TABLE without a primary key": ["CREATE TABLE w (k BIGINT)", "CREATE TABLE w AS SELECT 1 AS k"],
    "SHOW PARTITIONS": [
        Step("SHOW PARTITIONS p", [("pt=p1",), ("pt=p2",)]),
        Step("SHOW PARTITIONS p PARTITION (pt = 'p1')", [("pt=p1",)]),
    ],
    "partitions of format tables: ADD PARTITION, MSCK REPAIR TABLE, ANALYZE TABLE … PARTITION": [
        "ALTER TABLE p ADD PARTITION (pt = 'x')",
        "MSCK REPAIR TABLE p",
        "ANALYZE TABLE p PARTITION (pt = 'p1') COMPUTE STATISTICS NOSCAN",
    ],
    "CREATE TABLE … LOCATION (external tables)": [
        "CREATE TABLE w (k INT) TBLPROPERTIES ('primary-key' = 'k') LOCATION '/path'",
        "CREATE TABLE w LOCATION '/path'",
    ],
    "CREATE TABLE … AS SELECT": [
        "CREATE TABLE ctas PARTITIONED BY (pt) TBLPROPERTIES ('primary-key' = 'id,pt') AS SELECT * FROM p",
        Step("SELECT count(*) FROM ctas", [(2,)]),
    ],
    "REPLACE TABLE, CREATE OR REPLACE TABLE": [
        "CREATE OR REPLACE TABLE replaced TBLPROPERTIES ('primary-key' = 'k') AS SELECT 1 AS k",
        Step("SELECT * FROM replaced", [(1,)]),
        "REPLACE TABLE replaced (k INT, v INT) TBLPROPERTIES ('primary-key' = 'k')",
        Step("SELECT count(*) FROM replaced", [(0,)]),
    ],
    "CREATE TABLE … LIKE": [
        "CREATE TABLE l LIKE p",
        Step("SHOW TBLPROPERTIES l", [("bucket", "1"), ("primary-key", "id,pt")]),
        "CREATE TABLE IF NOT EXISTS l LIKE p USING paimon",
    ],
    "CREATE VIEW, DROP VIEW": [
        "CREATE VIEW v1 AS SELECT * FROM t",
        "CREATE TEMPORARY VIEW v1 AS SELECT * FROM t",
        "CREATE OR REPLACE VIEW v1 AS SELECT * FROM t",
        "CREATE OR REPLACE TEMPORARY VIEW v1 AS SELECT * FROM t",
        "DROP VIEW v1",
    ],
    "CREATE, REPLACE, CREATE OR REPLACE TAG": [
        "ALTER TABLE t CREATE TAG `TAG-1`",
        "ALTER TABLE t CREATE TAG IF NOT EXISTS `TAG-1`",
        "ALTER TABLE t CREATE TAG `TAG-2` RETAIN 7 DAYS",
        "ALTER TABLE t CREATE TAG `TAG-3` AS OF VERSION 1 RETAIN 12 HOURS",
        "ALTER TABLE t REPLACE TAG `TAG-3` AS OF VERSION 1 RETAIN 24 HOURS",
        "ALTER TABLE t CREATE OR REPLACE TAG `TAG-4` AS OF VERSION 1",
    ],
    "DELETE, RENAME TAG, SHOW TAGS": [
        "ALTER TABLE t RENAME TAG `TAG-3` TO `TAG-5`",
        "ALTER TABLE t DELETE TAG `TAG-1,TAG-2`",
        "ALTER TABLE t DELETE TAG IF EXISTS `TAG-1`",
        Step("SHOW TAGS t", [("TAG-4",), ("TAG-5",)]),
    ],
    "Alter: SET, UNSET TBLPROPERTIES, the comment included": [
        "ALTER TABLE t SET TBLPROPERTIES ('write-buffer-size' = '256 MB', 'comment' = 'words')",
        Step("SHOW TBLPROPERTIES t ('write-buffer-size')", [("write-buffer-size", "256 MB")]),
        "ALTER TABLE t UNSET TBLPROPERTIES ('write-buffer-size')",
        "ALTER TABLE t UNSET TBLPROPERTIES ('comment')",
    ],
    "RENAME TO": ["ALTER TABLE l RENAME TO l2", "ALTER TABLE default.l2 RENAME TO default.l3"],
    "ADD COLUMN, also with a position": [
        "ALTER TABLE l3 ADD COLUMNS (c1 INT, c2 STRING)",
        "ALTER TABLE l3 ADD COLUMN c INT FIRST",
        "ALTER TABLE l3 ADD COLUMN d INT AFTER c1",
    ],
    "RENAME, DROP COLUMN": [
        "ALTER TABLE l3 RENAME COLUMN d TO e",
        "ALTER TABLE l3 DROP COLUMNS (c, c2)",
        Step("SHOW COLUMNS IN l3", [("id",), ("pt",), ("c1",), ("e",)]),
    ],
    "nested columns, also of elements of arrays and values of maps": [
        "ALTER TABLE t ADD COLUMN s.f3 STRING",
        "ALTER TABLE nested ADD COLUMN v.element.f3 STRING",
        "ALTER TABLE nested ADD COLUMN m.value.f3 STRING",
        "ALTER TABLE t RENAME COLUMN s.f3 TO f4",
        "ALTER TABLE nested RENAME COLUMN v.element.f3 TO f4",
        "ALTER TABLE nested RENAME COLUMN m.value.f3 TO f4",
        "ALTER TABLE t DROP COLUMN s.f4",
        "ALTER TABLE nested DROP COLUMN v.element.f4",
        "ALTER TABLE nested DROP COLUMN m.value.f4",
        "ALTER TABLE t ALTER COLUMN s.f2 TYPE BIGINT",
        "ALTER TABLE nested ALTER COLUMN v.element.f2 TYPE BIGINT",
        "ALTER TABLE nested ALTER COLUMN m.value.f2 TYPE BIGINT",
    ],
    "DROP PARTITION": ["ALTER TABLE ctas DROP PARTITION (`pt` = 'p1')", Step("SELECT id FROM ctas", [(2,)])],
    "ALTER COLUMN comment, position, type": [
        "ALTER TABLE l3 ALTER COLUMN c1 COMMENT 'words'",
        "ALTER TABLE l3 ALTER COLUMN c1 FIRST",
        "ALTER TABLE l3 ALTER COLUMN c1 AFTER e",
        "ALTER TABLE l3 ALTER COLUMN c1 TYPE DOUBLE",
    ],
    "ALTER DATABASE": [
        "ALTER DATABASE d SET DBPROPERTIES ('a' = 'b')",
        "ALTER NAMESPACE d SET PROPERTIES ('a' = 'b')",
        "ALTER DATABASE d SET LOCATION 'file:/temp/d.db'",
    ],
    "Default values: DEFAULT in CREATE TABLE, INSERT and ALTER COLUMN": [
        "CREATE TABLE w (a BIGINT, b STRING DEFAULT 'x') TBLPROPERTIES ('primary-key' = 'a')",
        "INSERT INTO p VALUES (3, DEFAULT)",
        "ALTER TABLE p ALTER COLUMN pt SET DEFAULT 'x'",
        "ALTER TABLE p ADD COLUMN d INT DEFAULT 5",
    ],
    "Write: INSERT INTO, with VALUES, a query, column lists, PARTITION, BY NAME": [
        "INSERT INTO t VALUES (2, 'b', NULL)",
        "INSERT INTO t (v, id) SELECT 'c', 3",
        "INSERT INTO p PARTITION (pt = 'p3') VALUES (3)",
        "INSERT INTO t BY NAME SELECT 'd' AS v, 4 AS id",
        Step("SELECT id, v FROM t ORDER BY id", [(1, "a"), (2, "b"), (3, "c"), (4, "d")]),
    ],
    "INSERT OVERWRITE of a table without partitions": [
        Step("INSERT OVERWRITE t (id, v) VALUES (5, 'e'), (6, 'f')", [(5,), (6,)], then="SELECT id FROM t ORDER BY id")
    ],
    "INSERT OVERWRITE … PARTITION (p = 'x')": [
        Step("INSERT OVERWRITE p PARTITION (pt = 'p3') VALUES (4)", [(1, "p1"), (2, "p2"), (4, "p3")], then=_ROWS_OF_P)
    ],
    "INSERT OVERWRITE of a table with partitions, and with PARTITION (p)": [
        Step("INSERT OVERWRITE p VALUES (3, 'p1')", [(2, "p2"), (3, "p1"), (4, "p3")], then=_ROWS_OF_P),
        Step("INSERT OVERWRITE p PARTITION (pt) VALUES (5, 'p3')", [(2, "p2"), (3, "p1"), (5, "p3")], then=_ROWS_OF_P),
        "ALTER TABLE p SET TBLPROPERTIES ('dynamic-partition-overwrite' = 'false')",
        Step("INSERT OVERWRITE p VALUES (1, 'p1'), (2, 'p2')", [(1, "p1"), (2, "p2")], then=_ROWS_OF_P),
    ],
    "TRUNCATE TABLE, also of partitions": [
        Step("TRUNCATE TABLE ctas PARTITION (pt = 'p2')", [(0,)], then="SELECT count(*) FROM ctas"),
        "TRUNCATE TABLE ctas",
    ],
    "UPDATE": [Step("UPDATE t SET v = 'a_new' WHERE id = 5", [("a_new",)], then="SELECT v FROM t WHERE id = 5")],
    "UPDATE of a field of a STRUCT": ["UPDATE t SET s.f2 = 1 WHERE s.f1 = 'x'"],
    "DELETE FROM": [
        Step("DELETE FROM t WHERE id = 6", [(5,)], then="SELECT id FROM t"),
        Step("DELETE FROM l3", [(0,)], then="SELECT count(*) FROM l3"),
    ],
    "MERGE INTO with several clauses and conditions": [
        "INSERT INTO target VALUES (1, 10, 'c1'), (5, 50, 'c5'), (6, 60, 'c6')",
        Step(
            "MERGE INTO target USING "
            + _SOURCE.format("(1, 11, 'c0'), (5, 5, 'c1'), (6, 61, 'c66'), (7, 70, 'c99'), (8, 80, 'c8')", "a, b, c")
            + " ON target.a = source.a WHEN MATCHED AND target.a = 5 THEN UPDATE SET b = source.b + target.b "
            "WHEN MATCHED AND source.c > 'c2' THEN UPDATE SET * WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED AND c > 'c9' THEN INSERT (a, b, c) VALUES (a, b * 1.1, c) WHEN NOT MATCHED THEN INSERT *",
            [(5, 55, "c5"), (6, 61, "c66"), (7, 77, "c99"), (8, 80, "c8")],
            then="SELECT * FROM target ORDER BY a",
        ),
    ],
    "MERGE INTO … with SET * and INSERT *, and other columns than the table's": [
        Step(
            "MERGE INTO target USING "
            + _SOURCE.format("(5, 1, 'x', 2)", "a, b, c, more")
            + " ON target.a = source.a WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            [(1, "x")],
            then="SELECT b, c FROM target WHERE a = 5",
        )
    ],
    "SET spark.paimon.write.merge-schema": ["SET `spark.paimon.write.merge-schema` = true"],
    "COPY INTO": [
        "COPY INTO t FROM '/data/' FILE_FORMAT = (TYPE = CSV)",
        "COPY INTO '/data/' FROM t FILE_FORMAT = (TYPE = PARQUET)",
    ],
    "Query: SELECT, system tables": [
        Step("SELECT id FROM t", [(5,)]),
        Step("SELECT count(*) FROM `t$tags`", [(2,)]),
    ],
    "metadata columns __paimon_partition, __paimon_bucket": [
        Step("SELECT *, __paimon_partition.pt, __paimon_bucket FROM p WHERE id = 1", [(1, "p1", "p1", 0)])
    ],
    "metadata columns __paimon_file_path, __paimon_row_index": [
        "CALL sys.compact('target')",
        Step("SELECT a, __paimon_row_index FROM target ORDER BY a", [(5, 0), (6, 1), (7, 2), (8, 3)]),
        Step("SELECT count(*) FROM target t JOIN `target$files` f ON t.__paimon_file_path = f.file_path", [(4,)]),
    ],
    "_ROW_ID, _SEQUENCE_NUMBER": ["SELECT _ROW_ID FROM t", "SELECT _SEQUENCE_NUMBER FROM t"],
    "VERSION AS OF id or tag, TIMESTAMP AS OF text or seconds": [
        Step("SELECT count(*) FROM t VERSION AS OF 1", [(1,)]),
        Step("SELECT count(*) FROM t VERSION AS OF 'TAG-4'", [(1,)]),
        Step("SELECT count(*) FROM t TIMESTAMP AS OF '2999-06-01 00:00:00.123'", [(1,)]),
        Step("SELECT count(*) FROM t TIMESTAMP AS OF 32472144000", [(1,)]),
        "ALTER TABLE t CREATE TAG `1` AS OF VERSION 2",
        Step("SELECT max(id) FROM t VERSION AS OF '1'", [(2,)]),
    ],
    "VERSION AS OF 'watermark-…'": [
        Step("SELECT k FROM events VERSION AS OF 'watermark-1678883047356'", [(1,)])
    ],
    "paimon_incremental_query, paimon_incremental_between_timestamp": [
        Step("SELECT id FROM paimon_incremental_query('t', 2, 4) ORDER BY id", [(3,), (4,)]),
        Step("SELECT a FROM paimon_incremental_query('target', 1, 2) ORDER BY a", [(5,), (6,), (7,), (8,)]),
        Step("SELECT count(*) FROM paimon_incremental_between_timestamp('t', '1692169000000', '1692169900000')", [(0,)]),
        Step("SELECT count(*) FROM paimon_incremental_between_timestamp('p', '2025-03-12', '2999-03-12')", count=1),
    ],
    "paimon_incremental_to_auto_tag": [
        "ALTER TABLE t CREATE TAG `2024-12-03` AS OF VERSION 3",
        "ALTER TABLE t CREATE TAG `2024-12-04` AS OF VERSION 4",
        Step("SELECT id FROM paimon_incremental_to_auto_tag('t', '2024-12-04')", [(4,)]),
    ],
    "Functions: sys.max_pt, sys.path_to_descriptor, sys.descriptor_to_string, sys.descriptor_to_presigned_url": [
        "SELECT * FROM p WHERE pt = sys.max_pt('p')",
        "SELECT sys.path_to_descriptor('file:///x')",
        "SELECT sys.descriptor_to_string(v) FROM t",
        "SELECT sys.descriptor_to_presigned_url('default.t', v, INTERVAL '5' MINUTE) FROM t",
    ],
    "CREATE FUNCTION, DESCRIBE FUNCTION, SHOW USER FUNCTIONS, DROP FUNCTION": [
        "CREATE FUNCTION area(width DOUBLE, height DOUBLE) RETURNS DOUBLE RETURN width * height",
        "CREATE OR REPLACE TEMPORARY FUNCTION f AS 'com.example.F' USING JAR '/tmp/f.jar'",
        "DESCRIBE FUNCTION EXTENDED area",
        "SHOW USER FUNCTIONS",
        "DROP FUNCTION IF EXISTS area",
        "DROP TEMPORARY FUNCTION f",
    ],
    "Auxiliary: SET, RESET": [
        "SET spark.sql.sources.partitionOverwriteMode=dynamic",
        "SET spark.paimon.*.default.T.scan.snapshot-id=1",
        "RESET spark.paimon.file.block-size",
    ],
    "DESCRIBE TABLE, also EXTENDED": [Step("DESCRIBE TABLE t", count=3), Step("DESCRIBE TABLE EXTENDED t", count=9)],
    "SHOW CREATE TABLE, SHOW COLUMNS": [Step("SHOW CREATE TABLE t", count=1), Step("SHOW COLUMNS FROM t", count=3)],
    "SHOW TABLE EXTENDED, SHOW VIEWS": [
        "SHOW TABLE EXTENDED IN db LIKE 'test*'",
        "SHOW TABLE EXTENDED IN db LIKE 't' PARTITION(pt = '2024')",
        "SHOW VIEWS",
        "SHOW VIEWS LIKE 'test*'",
    ],
    "ANALYZE TABLE": [
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id",
        "ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS",
    ],
    "REFRESH TABLE": ["REFRESH TABLE t"],
}


def documented() -> list[tuple[str, str]]:
    """Return the rows of the table: the statement, and 'works', 'differs' or 'refused'."""
    text = PAGE.read_text().partition("## Comparison with Paimon's documentation")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    return [(re.sub(r"`|\*\*", "", statement).strip(), re.split(r"\W", here.strip())[0]) for statement, here in rows]


def test_each_row_of_the_table_is_as_documented(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    for text in SET_UP:
        catalog.sql(text, engine="local")
    catalog.table("default.events").write([{"k": 1, "at": date(2026, 1, 1)}], event_time="at")
    rows = documented()
    assert [statement for statement, _ in rows] == [*STATEMENTS, "Procedures"]
    wrong = []
    for statement, here in rows[:-1]:
        assert here in ("works", "differs", "refused")
        for step in (Step(each) if isinstance(each, str) else each for each in STATEMENTS[statement]):
            if here == "refused":
                with pytest.raises((UnsupportedFeatureError, InvalidInputError, SnapshotNotFoundError)):
                    catalog.sql(step.text, engine="local").to_arrow()
            elif not is_as_expected(catalog, step, "local"):
                wrong.append(step.text)
    assert wrong == []


def test_the_page_names_each_procedure() -> None:
    text = PAGE.read_text().partition("## Procedures")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")][2:]
    named = {name.strip() for row in rows for name in row.strip("| ").split(",")}
    assert named == set(PROCEDURES)
    refused = set(re.findall(r"`(\w+)`", text.partition("refused by name:")[2].partition(".")[0]))
    assert refused == UNSUPPORTED
