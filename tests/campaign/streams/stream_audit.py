"""The guarantees of a stream's table: no batch is lost, doubled, or out of order for a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakelsm.format.snapshot import CommitKind
from tests.campaign.locations import TableLocation
from tests.campaign.processes import CampaignError, Voice
from tests.campaign.streams.inputs import Sums
from tests.maintain.orphans.table_census import stored, unnamed_of

_WRITES = (CommitKind.APPEND, CommitKind.OVERWRITE)


def check_sums(found: Sums, expected: Sums, complete: bool) -> None:
    """Compare the rows of a table of sums. Until it is ``complete``, changes may be missing, but not in the middle."""
    for key, (n, total, last, most) in found.items():
        if last != most:
            raise CampaignError(f"key {key}: change {last} was written after change {most}")
        if key not in expected:
            raise CampaignError(f"key {key} is not in the input")
        if n > expected[key][0] or (n == expected[key][0] and total != expected[key][1]):
            raise CampaignError(f"key {key}: {n} changes with sum {total}, of {expected[key]}")
    if complete and found != expected:
        raise CampaignError(f"changes are lost: {sorted(found.items() ^ expected.items())[:6]}")


def since(before: Sums, now: Sums) -> Sums:
    """Return the sums of the changes after an earlier state."""
    found: Sums = {}
    for key, (n, total, last, most) in now.items():
        earlier = before.get(key, (0, 0, 0, 0))
        if n > earlier[0]:
            found[key] = (n - earlier[0], total - earlier[1], last, most)
    return found


def check_batches(commits: Sequence[tuple[str, int]]) -> None:
    """The batches of each commit user ascend: none is committed twice, or before an earlier one."""
    newest: dict[str, int] = {}
    for user, batch in commits:
        if batch <= newest.get(user, -1):
            raise CampaignError(f"user {user} committed batch {batch} after batch {newest[user]}")
        newest[user] = batch


def sums_of(location: TableLocation) -> Sums:
    """Return the rows of a table of sums."""
    found = location.opened().to_arrow(fresh=True).to_pydict()
    rows = dict(zip(found["k"], zip(found["n"], found["total"], found["last"], found["most"])))
    if len(rows) != len(found["k"]):
        raise CampaignError("a key has several rows")
    return rows


def commits_of(location: TableLocation) -> list[tuple[str, int]]:
    """Return the user and the batch of each retained snapshot with rows, oldest first."""
    snapshots = location.store().snapshots.list()
    return [(each.commit_user, each.commit_identifier) for each in snapshots if each.commit_kind in _WRITES]


def audit_sums(say: Voice, location: TableLocation, expected: Sums, complete: bool) -> None:
    """Check a table of sums in a process that has read nothing of it before."""
    check_batches(commits_of(location))
    check_sums(sums_of(location), expected, complete)
    say("result", True)


def audit_mirror(say: Voice, location: TableLocation, source: TableLocation, complete: bool) -> None:
    """Check a copy of a table."""
    check_batches(commits_of(location))
    here, there = (_rows(each) for each in (location, source))
    if complete and here != there:
        raise CampaignError(f"the copy differs: {sorted(here.items() ^ there.items())[:6]}")
    if ahead := [key for key, (number, _) in here.items() if key in there and number > there[key][0]]:
        raise CampaignError(f"the copy is ahead of its source at {ahead[:6]}")
    say("result", True)


def _rows(location: TableLocation) -> dict[int, tuple[int, int]]:
    found = location.opened().to_arrow(fresh=True).to_pydict()
    return dict(zip(found["k"], zip(found["seq"], found["v"])))


def audit_files(say: Voice, location: TableLocation, allowed: Mapping[str, int]) -> None:
    """Check all files of a table; the files of killed writers are removed, and then none is left."""
    table, store = location.opened(), location.store()
    before = table.to_arrow(fresh=True).num_rows
    check = table.maintenance.check(data="full", engine="local")
    if {finding.rule for finding in check.findings} - set(allowed) or not check.complete:
        raise CampaignError(check.as_text())
    removed = table.maintenance.remove_orphans(0, force=True, engine="local")
    left = unnamed_of(store, stored(store))
    if removed.failures or left:
        raise CampaignError(f"left: {sorted(left)[:10]}, {removed.failures}")
    if table.maintenance.check(data="full", engine="local").findings and not allowed:
        raise CampaignError("a check finds strays where orphan removal found none")
    if table.to_arrow(fresh=True).num_rows != before:
        raise CampaignError("the removal of orphans changed the rows")
    say("result", removed.files)
