"""jobs/maintain.py as a program without Spark: verbs, several tables, and exit statuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.cli.main import UPKEEP, main
from tests.cli.fake_table import last_object
from tests.jobs.submitted import ROOT
from tests.maintain.versioned_table import rows


def warehouse_of(folder: Path, *names: str) -> Path:
    """A warehouse with tables of three snapshots, of which one is retained."""
    for name in names:
        table = Catalog(str(folder)).create_table(
            name,
            "id INT NOT NULL, v STRING",
            primary_key=["id"],
            options={
                "bucket": "1", "write-only": "true",
                "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1",
            },
        )
        for number in (1, 2, 3):
            table.write(rows((number, "v")))
    return folder


def maintain(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "jobs/maintain.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)


def test_a_failed_table_does_not_stop_the_others(tmp_path: Path) -> None:
    warehouse = warehouse_of(tmp_path, "db.a", "db.b", "db.c")
    for path in (warehouse / "db.db/b/snapshot").glob("snapshot-*"):
        path.write_text("{")
    done = maintain("all", "--warehouse", str(warehouse), "--database", "db", "--deadline", "1 h", "--report", "json")
    assert done.returncode == 5, done.stderr
    found = last_object(done.stdout)
    assert done.stdout.count("\n") == 1
    output = {table["table"]: (table["status"], table["exit_status"]) for table in found["tables"]}
    assert output == {"db.a": ("done", 0), "db.b": ("failed", 5), "db.c": ("done", 0)}
    assert found["exit_status"] == 5
    assert all(line.startswith("maintain.py all: ") for line in done.stderr.splitlines())
    for name in ("a", "c"):
        assert [path.name for path in (warehouse / f"db.db/{name}/snapshot").glob("snapshot-*")] == ["snapshot-3"]


def test_it_has_only_the_verbs_of_upkeep(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"], "maintain.py")
    assert ended.value.code == 0
    output = capsys.readouterr().out
    assert [verb.name for verb in UPKEEP if f"\n    {verb.name}" not in output] == []
    assert "query-service" not in output
    with pytest.raises(SystemExit) as ended:
        main(["expire"], "maintain.py")
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("maintain.py expire: error: name the table")
