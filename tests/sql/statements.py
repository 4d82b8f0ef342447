"""Scripts that have each kind of statement: its rows, or a query in this process that shows what it did."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Step:
    """A statement, and the rows that it returns, or those of the query ``then`` after it.

    ``count`` instead: the number of rows that it returns.
    """

    text: str
    rows: Rows | None = None
    _: KW_ONLY
    then: str | None = None
    count: int | None = None


def _effect(text: str, then: str, rows: Rows) -> Step:
    return Step(text, rows, then=then)


_IDS = "SELECT id FROM db.t ORDER BY id"
_COLUMNS = "SHOW COLUMNS IN db.c"
_MERGE = (
    "MERGE INTO db.m t USING (SELECT * FROM VALUES (1, 'one', 1), (2, 'two', 2), (4, 'four', 9) AS x(k, v, n)) AS s "
    "ON t.k = s.k "
)

CHANGES = [
    Step("CREATE DATABASE db"),
    Step("CREATE DATABASE IF NOT EXISTS db"),
    Step("CREATE DATABASE other"),
    Step("DROP DATABASE other"),
    Step("DROP DATABASE IF EXISTS other"),
    Step(
        "CREATE TABLE db.t (id INT COMMENT 'it''s', v STRING, n BIGINT, p STRING) USING paimon COMMENT 'c' "
        "PARTITIONED BY (p) TBLPROPERTIES ('primary-key' = 'p,id', 'bucket' = '1', 'write-only' = 'true')"
    ),
    Step("CREATE TABLE IF NOT EXISTS db.t (id INT) TBLPROPERTIES ('primary-key' = 'id')"),
    _effect(
        "INSERT INTO db.t VALUES (1, 'a', 1, 'x'), (2, NULL, 2L, 'y'), (3, 'c', NULL, 'y')",
        "SELECT id, v, n, p FROM db.t ORDER BY id",
        [(1, "a", 1, "x"), (2, None, 2, "y"), (3, "c", None, "y")],
    ),
    _effect(
        "INSERT INTO TABLE db.t (n, id, p) SELECT n + 10, id + 10, p FROM db.t WHERE id = 1",
        "SELECT id, v, n, p FROM db.t WHERE id > 10",
        [(11, None, 11, "x")],
    ),
    _effect("INSERT INTO db.t PARTITION (p = 'z') SELECT 5, 'e', 5", "SELECT id, n FROM db.t WHERE p = 'z'", [(5, 5)]),
    _effect(
        "WITH s AS (SELECT 6 AS id) INSERT INTO db.t PARTITION (p) SELECT id, 'f', 6, 'z' FROM s",
        "SELECT id, v FROM db.t WHERE p = 'z' ORDER BY id",
        [(5, "e"), (6, "f")],
    ),
    _effect(
        "INSERT INTO db.t BY NAME SELECT 'w' AS p, 9 AS id, 'n' AS v",
        "SELECT id, v, n FROM db.t WHERE p = 'w'",
        [(9, "n", None)],
    ),
    _effect(
        "INSERT INTO db.t SELECT code, 'f', 0, 'w' FROM codes", "SELECT id FROM db.t WHERE v = 'f' AND n = 0", [(7,)]
    ),
    _effect("UPDATE db.t SET n = n * 2, t.v = 'u' WHERE t.id = 2", "SELECT id, n FROM db.t WHERE v = 'u'", [(2, 4)]),
    _effect("DELETE FROM db.t x WHERE x.id IN (3, 6)", _IDS, [(1,), (2,), (5,), (7,), (9,), (11,)]),
    _effect("INSERT OVERWRITE db.t PARTITION (p = 'x') SELECT 8, 'o', 8", _IDS, [(2,), (5,), (7,), (8,), (9,)]),
    _effect("INSERT OVERWRITE db.t VALUES (10, 'd', 10, 'w')", _IDS, [(2,), (5,), (8,), (10,)]),
    _effect("INSERT OVERWRITE TABLE db.t BY NAME SELECT 'w' AS p, 12 AS id", _IDS, [(2,), (5,), (8,), (12,)]),
    _effect("TRUNCATE TABLE db.t PARTITION (p = 'w')", _IDS, [(2,), (5,), (8,)]),
    _effect("ALTER TABLE db.t DROP PARTITION (p = 'z'), PARTITION (p = 'x')", _IDS, [(2,)]),
    Step("ALTER TABLE db.t DROP IF EXISTS PARTITION (p = 'none')"),
    Step("CREATE TABLE db.m TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1') AS SELECT id AS k, v, n FROM db.t"),
    _effect(
        _MERGE + "WHEN MATCHED AND s.n > 5 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v, n = t.n + s.n "
        "WHEN NOT MATCHED AND s.k < 3 THEN INSERT (k, v) VALUES (s.k, upper(s.v)) "
        "WHEN NOT MATCHED BY TARGET THEN INSERT *",
        "SELECT * FROM db.m ORDER BY k",
        [(1, "ONE", None), (2, "two", 6), (4, "four", 9)],
    ),
    _effect(
        "MERGE INTO db.m USING (SELECT 1 AS k, 'all' AS v, 7L AS n) s ON m.k = s.k WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED BY SOURCE AND m.k = 2 THEN UPDATE SET n = 0 WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "SELECT * FROM db.m ORDER BY k",
        [(1, "all", 7), (2, "two", 0)],
    ),
    _effect(
        "MERGE WITH SCHEMA EVOLUTION INTO db.m USING more ON m.k = more.k WHEN MATCHED THEN UPDATE SET *",
        "SELECT * FROM db.m ORDER BY k",
        [(1, "all", 7, None), (2, "two", 0, "x")],
    ),
    Step("ANALYZE TABLE db.m COMPUTE STATISTICS FOR ALL COLUMNS"),
    Step("ANALYZE TABLE db.m COMPUTE STATISTICS FOR COLUMNS k, v"),
    _effect("ANALYZE TABLE db.m COMPUTE STATISTICS", "SELECT mergedRecordCount FROM db.`m$statistics`", [(2,)]),
    _effect("TRUNCATE TABLE db.m", "SELECT count(*) FROM db.m", [(0,)]),
    Step("DROP TABLE db.m"),
    Step("DROP TABLE IF EXISTS db.m"),
]

QUERIES = [
    Step("SELECT t.v, c.code FROM db.t t LEFT JOIN codes c ON t.id = c.code", [("u", None)]),
    Step(
        "WITH a AS (SELECT id FROM db.t) SELECT id FROM a WHERE id IN (SELECT id FROM db.t) UNION ALL VALUES (1)", count=2
    ),
    Step("SELECT id, sum(n) OVER (PARTITION BY p ORDER BY id) FROM db.t", [(2, 4)]),
    Step("FROM db.t SELECT id", [(2,)]),
    Step("(SELECT 1 AS a)", [(1,)]),
    Step("VALUES (1, 'x')", [(1, "x")]),
    Step("SELECT count(*) FROM db.t VERSION AS OF 1", [(3,)]),
    Step("SELECT count(*) FROM db.t FOR VERSION AS OF '1'", [(3,)]),
    Step("SELECT count(*) FROM db.t TIMESTAMP AS OF '2999-01-01 00:00:00'", [(1,)]),
    Step("SELECT count(*) FROM db.t TIMESTAMP AS OF 32472144000", [(1,)]),
    Step("SELECT snapshot_id FROM db.`t$snapshots` WHERE snapshot_id < 3 ORDER BY 1", [(1,), (2,)]),
    Step("SELECT count(*) FROM db.`t$files` VERSION AS OF 1", [(2,)]),
    Step("SELECT rowkind, id FROM db.`t$audit_log` ORDER BY id", [("+U", 2), ("-D", 3)]),
    Step("SELECT id FROM paimon_incremental_query('db.t', 1, 2)", [(11,)]),
    Step("SELECT count(*) FROM paimon_incremental_between_timestamp('db.t', '2000-01-01', '2000-01-02')", [(0,)]),
    Step("SELECT count(*) FROM db.t /*+ OPTIONS('scan.snapshot-id' = '2') */", [(4,)]),
    Step("SELECT count(*) FROM db.t /*+ OPTIONS('scan.timestamp' = '2999-01-01') */", [(1,)]),
    Step("SELECT id, __paimon_partition.p, __paimon_bucket FROM db.t", [(2, "y", 0)]),
    Step("EXPLAIN SELECT id FROM db.t WHERE id = 2"),
]

LISTINGS = [
    Step("SHOW DATABASES", [("db",)]),
    Step("SHOW SCHEMAS LIKE 'd*'", [("db",)]),
    Step("SHOW TABLES IN db LIKE 't'", [("db", "t")]),
    Step("SHOW PARTITIONS db.t", [("p=y",)]),
    Step("SHOW PARTITIONS db.t PARTITION (p = 'x')", []),
    Step("SHOW TBLPROPERTIES db.t ('bucket')", [("bucket", "1")]),
    Step("SHOW CREATE TABLE db.t", count=1),
    Step("SHOW COLUMNS FROM t IN db", [("id",), ("v",), ("n",), ("p",)]),
    Step("DESCRIBE TABLE db.t", count=7),
    Step("DESC EXTENDED db.t", count=13),
    Step("DESCRIBE HISTORY db.t LIMIT 2", count=2),
]

COLUMNS = [
    Step("CREATE TABLE db.b (k INT, s STRUCT<a: INT>) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')"),
    Step("CREATE OR REPLACE TABLE db.b2 LIKE db.b"),
    _effect(
        "CREATE OR REPLACE TABLE db.b2 TBLPROPERTIES ('primary-key' = 'k') AS SELECT 1 AS k, count(*) AS n FROM db.b2",
        "SELECT k, n FROM db.b2",
        [(1, 0)],
    ),
    _effect("REPLACE TABLE db.b2 (id INT, PRIMARY KEY (id))", "SELECT count(*) FROM db.b2", [(0,)]),
    Step("DROP TABLE db.b2"),
    Step("CREATE TABLE db.c LIKE db.b TBLPROPERTIES ('write-only' = 'true')"),
    Step("INSERT INTO db.c (k) VALUES (1)"),
    _effect(
        "ALTER TABLE db.c ADD COLUMNS (a INT COMMENT 'x' FIRST, b STRING AFTER k)",
        _COLUMNS,
        [("a",), ("k",), ("b",), ("s",)],
    ),
    _effect("ALTER TABLE db.c ADD COLUMN s.f BIGINT", "SELECT s.f FROM db.c", [(None,)]),
    _effect("ALTER TABLE db.c RENAME COLUMN b TO d", _COLUMNS, [("a",), ("k",), ("d",), ("s",)]),
    _effect("ALTER TABLE db.c RENAME COLUMN s.f TO g", "SELECT s.g FROM db.c", [(None,)]),
    _effect(
        "ALTER TABLE db.c ALTER COLUMN a TYPE BIGINT",
        "DESC db.c",
        [
            ("a", "BIGINT", "x"),
            ("k", "INT NOT NULL", None),
            ("d", "STRING", None),
            ("s", "STRUCT<`a`: INT, `g`: BIGINT>", None),
        ],
    ),
    Step("ALTER TABLE db.c ALTER COLUMN a COMMENT 'y'"),
    Step("ALTER TABLE db.c SET TBLPROPERTIES ('alter-column-null-to-not-null.disabled' = 'false')"),
    Step("ALTER TABLE db.c CHANGE COLUMN d SET NOT NULL"),
    Step("ALTER TABLE db.c ALTER COLUMN d DROP NOT NULL"),
    Step("ALTER TABLE db.c UNSET TBLPROPERTIES IF EXISTS ('alter-column-null-to-not-null.disabled')"),
    _effect("ALTER TABLE db.c ALTER COLUMN a AFTER d", _COLUMNS, [("k",), ("d",), ("a",), ("s",)]),
    _effect("ALTER TABLE db.c ALTER COLUMN s FIRST", _COLUMNS, [("s",), ("k",), ("d",), ("a",)]),
    _effect("ALTER TABLE db.c DROP COLUMNS (d, s.g)", _COLUMNS, [("s",), ("k",), ("a",)]),
    Step("ALTER TABLE db.c DROP COLUMN IF EXISTS nothing"),
    Step("ALTER TABLE db.c SET TBLPROPERTIES ('num-sorted-run.compaction-trigger' = '7', 'comment' = 'words')"),
    _effect(
        "ALTER TABLE db.c UNSET TBLPROPERTIES ('write-only')",
        "SHOW TBLPROPERTIES db.c",
        [("bucket", "1"), ("num-sorted-run.compaction-trigger", "7"), ("primary-key", "k")],
    ),
    Step("ALTER TABLE db.c RENAME TO c2"),
    _effect("ALTER TABLE db.c2 RENAME TO db.c", "SELECT k FROM db.c", [(1,)]),
]

TAGS = [
    Step("ALTER TABLE db.t CREATE TAG `t-1` AS OF VERSION 1 RETAIN 7 DAYS"),
    Step("ALTER TABLE db.t CREATE TAG IF NOT EXISTS `t-1`"),
    Step("ALTER TABLE db.t REPLACE TAG `t-1` AS OF VERSION 2"),
    Step("ALTER TABLE db.t CREATE OR REPLACE TAG t2"),
    _effect("ALTER TABLE db.t RENAME TAG `t-1` TO t1", "SHOW TAGS db.t", [("t1",), ("t2",)]),
    Step("SELECT count(*) FROM db.t VERSION AS OF 't1'", [(4,)]),
    Step("SELECT count(*) FROM db.t /*+ OPTIONS('scan.tag-name' = 't2') */", [(1,)]),
    Step("SELECT id FROM paimon_incremental_query('db.t', 't1', 't2')", [(2,)]),
    Step("SHOW TAGS db.t", [("t1",), ("t2",)]),
    _effect("ALTER TABLE db.t DELETE TAG `t1,t2`", "SHOW TAGS db.t", []),
    Step("ALTER TABLE db.t DELETE TAG IF EXISTS t2"),
    Step(
        "CREATE TABLE db.d (k INT) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1', 'tag.creation-period' = 'daily')"
    ),
    Step("INSERT INTO db.d VALUES (1)"),
    Step("ALTER TABLE db.d CREATE TAG `2024-01-01`"),
    Step("INSERT INTO db.d VALUES (2)"),
    Step("ALTER TABLE db.d CREATE TAG `2024-01-02`"),
    Step("SELECT k FROM paimon_incremental_to_auto_tag('db.d', '2024-01-02')", [(2,)]),
]

CALLS = [
    Step("CALL sys.create_tag('db.d', 'one', 1, '1 d')"),
    Step("CALL sys.replace_tag(table => 'db.d', tag => 'one', snapshot => 2)"),
    Step("CALL sys.rename_tag('db.d', 'one', 'two')"),
    Step("CALL sys.create_branch('db.d', 'b', 'two')"),
    Step("CALL sys.rename_branch('db.d', 'b', 'c')"),
    Step("SHOW BRANCHES db.d", [("c",)]),
    _effect("INSERT INTO db.`d$branch_c` VALUES (3)", "SELECT count(*) FROM db.`d$branch_c`", [(3,)]),
    Step("SELECT k FROM db.`d$branch_c` WHERE k > 2", [(3,)]),
    _effect("CALL sys.fast_forward('db.d', 'c')", "SELECT count(*) FROM db.d", [(3,)]),
    Step("CALL sys.delete_branch('db.d', 'c')"),
    Step("CALL sys.reset_consumer(table => 'db.d', consumerId => 'x', nextSnapshotId => 2)"),
    _effect("CALL sys.clear_consumers('db.d')", "SELECT count(*) FROM db.`d$consumers`", [(0,)]),
    Step("CALL sys.create_tag_from_timestamp('db.d', 'first', 0)"),
    _effect("CALL sys.delete_tag('db.d', 'first')", "SHOW TAGS db.d", [("2024-01-01",), ("two",)]),
    _effect("CALL sys.rollback(table => 'db.d', tag => 'two')", "SELECT count(*) FROM db.d", [(2,)]),
    _effect("CALL sys.rollback_to_timestamp('db.d', 4000000000000)", "SELECT count(*) FROM db.d", [(2,)]),
    Step("CALL sys.expire_tags('db.d', '2999-01-01 00:00:00')"),
    Step("CALL sys.analyze('db.d', 'k')"),
    _effect("CALL sys.compact('db.d')", "SELECT count(*), max(level) FROM db.`d$files`", [(1, 5)]),
    _effect("CALL sys.expire_snapshots('db.d', 1, 1)", "SELECT count(*) FROM db.`d$snapshots`", [(1,)]),
    Step("CALL sys.remove_orphan_files(table => 'db.d', older_than => '2 days', dry_run => TRUE)"),
    Step("INSERT INTO db.t VALUES (1, 'a', 1, 'x')"),
    Step("CALL sys.mark_partition_done('db.t', 'p=x;p=y')"),
    Step("CALL sys.expire_partitions('db.t', '1000000 d', expire_strategy => 'update-time')"),
    _effect("CALL sys.drop_partition('db.t', 'p=y')", "SELECT id FROM db.t", [(1,)]),
    _effect("OPTIMIZE db.t WHERE p = 'x' FULL", "SELECT max(level) FROM db.`t$files`", [(5,)]),
    Step("VACUUM db.t RETAIN 48 HOURS DRY RUN"),
    _effect("RESTORE TABLE db.t TO VERSION AS OF 1", "SELECT count(*) FROM db.t", [(3,)]),
    Step("RESTORE TABLE db.t TO TIMESTAMP AS OF '2999-01-01'"),
    Step("DROP DATABASE db CASCADE"),
]

#: Run in this order, in one catalog.
SCRIPT = [*CHANGES, *QUERIES, *LISTINGS, *COLUMNS, *TAGS, *CALLS]
#: Statements that are refused by name on both engines before a session is used.
REFUSED = [
    "CREATE TABLE db.x (k INT)",
    "CREATE TABLE db.x (k INT) LOCATION '/x'",
    "CREATE TABLE db.x (k INT DEFAULT 1) TBLPROPERTIES ('primary-key' = 'k')",
    "CREATE TABLE db.x (k INT) USING orc",
    "CREATE TABLE db.x (k INT) PARTITIONED BY (bucket(4, k))",
    "CREATE DATABASE x COMMENT 'c'",
    "CREATE VIEW v AS SELECT 1",
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1",
    "CREATE FUNCTION f AS 'x'",
    "DROP VIEW v",
    "DROP FUNCTION f",
    "ALTER DATABASE db SET LOCATION 'x'",
    "ALTER VIEW v RENAME TO w",
    "ALTER TABLE db.x ADD COLUMN a INT DEFAULT 1",
    "ALTER TABLE db.x ADD COLUMN a INT NOT NULL",
    "ALTER TABLE db.x ALTER COLUMN a SET DEFAULT 1",
    "ALTER TABLE db.x ALTER COLUMN s.a FIRST",
    "ALTER TABLE db.x ADD PARTITION (p = 1)",
    "ALTER TABLE db.x RECOVER PARTITIONS",
    "ALTER TABLE db.x REPLACE COLUMNS (a INT)",
    "ALTER TABLE db.x SET LOCATION 'x'",
    "ANALYZE TABLE db.x PARTITION (p = 1) COMPUTE STATISTICS",
    "INSERT INTO db.x REPLACE WHERE k = 1 SELECT 1",
    "INSERT OVERWRITE db.x PARTITION (p = 1) IF NOT EXISTS SELECT 1",
    "UPDATE db.x SET s.a = 1",
    "WITH a AS (SELECT 1) DELETE FROM db.x",
    "EXPLAIN DROP TABLE db.x",
    "OPTIMIZE db.x ZORDER BY k",
    "VACUUM db.x LITE",
    "SHOW VIEWS",
    "SHOW FUNCTIONS",
    "SHOW USER FUNCTIONS",
    "SHOW CATALOGS",
    "SHOW TABLE EXTENDED IN db LIKE 'x'",
    "DESCRIBE DATABASE db",
    "DESCRIBE FUNCTION f",
    "DESCRIBE QUERY SELECT 1",
    "DESCRIBE db.x PARTITION (p = 1)",
]
