"""A platform engineer maintains a warehouse by the command line and on a schedule. No Spark."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from lakelsm import Catalog

warehouse = tempfile.mkdtemp()


def lakelsm(*arguments: str) -> str:
    """Run the command on the warehouse, which must succeed."""
    command = [sys.executable, "-m", "lakelsm", *arguments, "--warehouse", warehouse]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


events = Catalog(warehouse).create_table("ops.events", {"id": "INT", "what": "STRING"}, primary_key="id")
for number in range(3):
    events.write([{"id": number, "what": "start"}])

print(lakelsm("tables"))
print(lakelsm("describe", "--table", "ops.events"))
report = json.loads(lakelsm("all", "--database", "ops", "--report", "json").splitlines()[-1])
print(report)
lakelsm("tag", "create", "before-upgrade", "--table", "ops.events")
events.write([{"id": 9, "what": "broken"}])
lakelsm("rollback", "--tag", "before-upgrade", "--table", "ops.events")

assert sorted(events.to_arrow()["id"].to_pylist()) == [0, 1, 2]
assert events.maintenance.check().ok
assert events.maintenance.run_all(steps=["expire", "orphans"]).table == "ops.events"
