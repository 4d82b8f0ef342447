"""For any history of a table, removal deletes the files that no state names, and all reads stay the same."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelsm import Catalog, Table
from tests.crashing_file_io import crashes
from tests.examples import examples
from tests.maintain.orphans.table_census import census, unnamed

ACTIONS = ("write", "write", "compact", "full", "overwrite", "tag", "untag", "branch", "unbranch", "on branch",
           "expire", "keep changelog", "die", "remove")


def rows(seed: random.Random) -> pa.Table:
    keys = [seed.randrange(12) for _ in range(4)]
    parts, values = ["ab"[key % 2] for key in keys], [f"{seed.random()}"] * 4
    return pa.table({"p": parts, "k": pa.array(keys, pa.int32()), "v": values})


def act(table: Table, root: Path, action: str, seed: random.Random) -> None:
    """Run one action. Does nothing if the table does not allow it in its present state."""
    tags, branches = [tag.name for tag in table.tags.list()], [branch.name for branch in table.branches.list()]
    if action == "write":
        table.write(rows(seed))
    elif action in ("compact", "full"):
        table.compact(full=action == "full", engine="local")
    elif action == "overwrite":
        table.overwrite(rows(seed))
    elif action == "tag":
        table.tags.create(f"t{len(tags)}", if_not_exists=True)
    elif action == "untag" and tags:
        table.tags.delete(seed.choice(tags))
    elif action == "branch" and tags:
        table.branches.create(f"b{len(branches)}", tag=seed.choice(tags), ignore_if_exists=True)
    elif action == "unbranch" and branches:
        table.branches.delete(seed.choice(branches))
    elif action == "on branch" and branches:
        table.branches.open(seed.choice(branches)).write(rows(seed))
    elif action == "expire":
        table.maintenance.expire_snapshots(retain_last=seed.randrange(1, 3))
    elif action == "keep changelog":
        keep_changelog_alone(root)
    elif action == "die":
        crashes(root, lambda dying: dying.write(rows(seed)), seed.randrange(1, 16))
    elif action == "remove":
        table.maintenance.remove_orphans(0, force=True, engine="local")


def keep_changelog_alone(root: Path) -> None:
    """Make the oldest snapshot a long-lived changelog, unless it is the newest, as an interrupted expiry does."""
    ids = sorted(int(path.name.removeprefix("snapshot-")) for path in (root / "snapshot").glob("snapshot-*"))
    if len(ids) < 2:
        return
    (root / "changelog").mkdir(exist_ok=True)
    path = root / "snapshot" / f"snapshot-{ids[0]}"
    path.rename(root / "changelog" / f"changelog-{ids[0]}")


def shown(table: Table) -> list[pa.Table]:
    """Return the rows of every readable state."""
    of_branches = [table.branches.open(branch.name) for branch in table.branches.list()]
    states = [each.at(tag=tag.name).to_arrow(ordered=True) for each in (table, *of_branches) for tag in each.tags.list()]
    newest = [each.to_arrow(ordered=True) for each in (table, *of_branches)]
    return [*states, *newest, *(table.at(snapshot=each).to_arrow(ordered=True) for each in table._opened.snapshots.ids())]


@examples(10)
@given(actions=st.lists(st.sampled_from(ACTIONS), min_size=3, max_size=10), seed=st.integers(0, 2**32))
def test_removal_deletes_unnamed_files_and_no_read_changes(actions: list[str], seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        table = Catalog(folder).create_table(
            "db.t",
            "p STRING, k INT, v STRING",
            primary_key=["p", "k"],
            partition_by=["p"],
            options={
                "bucket": chance.choice([-1, 2]),
                "write-only": True,
                "changelog-producer": chance.choice(["none", "input"]),
                "manifest.full-compaction-threshold-size": "1 b",
            },
        )
        root = Path(folder) / "db.db" / "t"
        table.write(rows(chance))
        for action in actions:
            act(table, root, action, chance)
        expected, before, states = unnamed(root), census(root), shown(table)
        result = table.maintenance.remove_orphans(0, force=True, engine="local")
        records = {path for path in census(root) if path.startswith("service/")}
        assert before - census(root) - records == expected
        assert result.files == len(expected) and shown(table) == states
