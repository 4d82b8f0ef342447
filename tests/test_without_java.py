"""Without Java: tables are created, written, read, looked up, compacted and followed where none can be found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, os, shutil, sys
import pyarrow as pa

assert shutil.which("java") is None and "JAVA_HOME" not in os.environ
from lakelsm import Catalog
from lakelsm.errors import SparkUnavailableError

table = Catalog(sys.argv[1]).create_table(
    "shop.orders",
    "id BIGINT, tier STRING, price DOUBLE",
    primary_key=["id"],
    options={"bucket": "2", "changelog-producer": "lookup", "write-only": "true"},
)
first = pa.table({"id": [3, 1, 2], "tier": ["gold", "tin", "gold"], "price": [3.0, 1.0, 2.0]})
table.write(first)
table.write(pa.table({"id": [2, 4], "tier": ["tin", "gold"], "price": [2.5, 4.0]}).to_reader())
table.delete(keys=pa.table({"id": [3]}))
with table.lookup(columns=["tier"], refresh="never") as partial, table.lookup(key=["tier"], refresh="never") as full:
    keys = pa.table({"id": [4, 3, 1]})
    looked_up = {
        "caches": [partial.staleness().cache, full.staleness().cache],
        "one": [partial.get(2), partial.get(3)],
        "many": partial.get_many(keys)["tier"].to_pylist(),
        "by another key": sorted(row["id"] for row in full.get_all("tin")),
    }
    table.write(pa.table({"id": [3, 4], "tier": ["tin", "tin"], "price": [3.5, 4.0]}))
    partial.refresh()
    full.refresh()
    looked_up["refreshed"] = [partial.get(3), sorted(row["id"] for row in full.get_all("tin"))]
loaded = sorted({name.split(".")[0] for name in sys.modules} & {"pyspark", "py4j", "sqlglot"})

def rows(found):
    return sorted(tuple(row.values()) for row in found.to_pylist())

seen = {
    "merged": rows(table.to_arrow()),
    "dear": rows(table.to_arrow(where="tier = 'tin' AND price > 3.6", columns=["id"])),
    "count": table.count().rows,
    "looked up": looked_up,
    "files": [table.inspect.system(name).to_arrow().num_rows for name in ("files", "audit_log", "ro")],
    "status": table.compact(full=True).status,
    "analyzed": table.maintenance.analyze().rows,
}
seen["compacted"] = rows(table.to_arrow())
seen["changes"] = rows(table.changelog_reader().read_all().select(["rowkind", "id", "tier"]))
seen["streamed"] = sum(batch.num_rows for batch in table.to_reader())
try:
    table.read()
except SparkUnavailableError as error:
    seen["refused"] = str(error)
print(json.dumps([seen, loaded]))
"""


def test_a_table_is_created_written_read_looked_up_compacted_and_followed_without_java(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False, env={"PATH": ""}
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    seen, loaded = json.loads(ran.stdout)
    assert loaded == [], "nothing that these calls do not need"
    rows = [[1, "tin", 1.0], [2, "tin", 2.5], [3, "tin", 3.5], [4, "tin", 4.0]]
    assert seen.pop("refused").startswith("Spark needs a Java runtime 17 or newer, and none was found")
    assert seen == {
        "merged": rows,
        "dear": [[4]],
        "count": 4,
        "looked up": {
            "caches": ["partial", "full"],
            "one": [{"tier": "tin"}, None],
            "many": ["gold", None, "tin"],
            "by another key": [1, 2],
            "refreshed": [{"tier": "tin"}, [1, 2, 3, 4]],
        },
        "files": [6, 4, 0],
        "status": "done",
        "analyzed": 4,
        "compacted": rows,
        "changes": [["+I", 1, "tin"], ["+I", 2, "tin"], ["+I", 3, "tin"], ["+I", 4, "tin"]],
        "streamed": 4,
    }
