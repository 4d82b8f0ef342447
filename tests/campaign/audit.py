"""The guarantees after each kill, checked by a process that has read nothing of the table before."""

from __future__ import annotations

from collections import Counter

from lakelsm import Table
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import HOLDING_TAG
from tests.campaign.ledger import Ledger, Rows, State
from tests.campaign.locations import TableLocation
from tests.campaign.processes import CampaignError, Voice
from tests.maintain.orphans.table_census import stored, unnamed_of

_STRAY = {"manifest-stray"}


def followed(say: Voice, location: TableLocation, ledger: Ledger) -> None:
    """Report the ledger, updated from snapshots, tags and branches, and the states; no rows are read."""
    store = location.store()
    states = ledger.follow(store)
    ledger.latest = states[-1]
    ledger.check_batches(ledger.latest)
    _tags(None, store, ledger)
    _branches(None, store, ledger)
    say("result", (ledger, states))


def audit(say: Voice, location: TableLocation, ledger: Ledger, remove: bool, settled: bool) -> None:
    """Report the updated ledger, the leftovers by kind, and the states. ``remove``: leftovers are removed.

    Until the table is ``settled``, a check may find what a kill left unfinished: an outdated hint; an expiry, whose
    snapshots below EARLIEST must not be read; a rollback; and a branch that is being created or deleted, which cannot be
    opened. A hint stays outdated until the next commit; a rerun that finds everything committed makes no commit.
    Manifests of killed commits stay until orphans are removed.
    Raises CampaignError, or the error of a read that must not fail.
    """
    table, store = location.opened(), location.store()
    states = ledger.follow(store)
    latest = states[-1]
    ledger.check_batches(latest)
    _same(_rows(table), latest.rows, "the newest snapshot")
    earliest = store.snapshots.earliest_id() or 0
    for state in states:
        if settled or state.snapshot_id >= earliest:
            _same(_rows(table.at(snapshot=state.snapshot_id)), state.rows, f"snapshot {state.snapshot_id}")
    _tags(table, store, ledger)
    _branches(table, store, ledger)
    check = table.maintenance.check(data="full", engine="local")
    found = {finding.rule for finding in check.findings}
    # A holding tag stays until its retention time has passed.
    allowed = {"tag-unfinished", "manifest-stray", *(["stale-hint"] if ledger.left_behind == latest else [])}
    if not settled:
        allowed |= {"expiry-unfinished", "rollback-unfinished", "branch-unfinished", "stale-hint"}
        ledger.left_behind = latest if "stale-hint" in found else None
    if found - allowed or not check.complete:
        raise CampaignError(check.as_text())
    left = unnamed_of(store, stored(store))
    strays = {finding.thing.removeprefix(f"{store.paths.root}/") for finding in check.findings if finding.rule in _STRAY}
    expected = {path for path in left if path.startswith("manifest/") and not path.endswith(".tmp")}
    # With an unfinished expiry, rollback or tag, the check may not know which manifests are stray.
    if strays - expected or (found <= _STRAY and strays != expected):
        raise CampaignError(f"stray manifests: {sorted(strays ^ expected)[:10]}")
    leftovers = _leftovers(table, store, left, remove)
    ledger.latest = latest
    say("result", (ledger, leftovers, states))


def _rows(table: Table, **travel: object) -> Rows:
    found = table.to_arrow(fresh=True, **travel).to_pydict()  # type: ignore[arg-type]
    rows = dict(zip(zip(found["p"], found["k"]), found["v"]))
    if len(rows) != len(found["v"]):
        raise CampaignError("a key has several rows")
    return rows


def _same(found: Rows, expected: Rows, what: str) -> None:
    if found != expected:
        wrong = sorted(found.items() ^ expected.items())[:6]
        raise CampaignError(f"{what} has {len(found)} rows for {len(expected)}; of one alone: {wrong}")


def _tags(table: Table | None, store: TableStore, ledger: Ledger) -> None:
    # A killed creation of a tag leaves a holding tag for a while.
    names = {name for name in store.tags.names() if not name.startswith(HOLDING_TAG)}
    known = set(ledger.tags)
    if known - ledger.maybe_tags - names or names - known - ledger.maybe_tags:
        raise CampaignError(f"tags {sorted(names)}, of {sorted(known)} and maybe {sorted(ledger.maybe_tags)}")
    found: dict[str, State] = {}
    for name in names:
        found[name] = ledger.states[store.tags.get(name).snapshot.delta_manifest_list]
        if name in known - ledger.maybe_tags and found[name] != ledger.tags[name]:
            raise CampaignError(f"tag {name} names another snapshot")
        if table is not None:
            _same(_rows(table.at(tag=name)), found[name].rows, f"tag {name}")
    ledger.tags = found


def _branches(table: Table | None, store: TableStore, ledger: Ledger) -> None:
    names = {name for name in store.branches.names() if store.branches.is_whole(name)}
    known = set(ledger.branches)
    if known - ledger.maybe_branches - names or names - known - ledger.maybe_branches:
        raise CampaignError(f"branches {sorted(names)}, of {sorted(known)} and maybe {sorted(ledger.maybe_branches)}")
    found: dict[str, State] = {}
    for name in names:
        states = ledger.follow(store.on_branch(name))
        for state in states if table is not None else ():
            _same(_rows(table.branches.open(name).at(snapshot=state.snapshot_id)), state.rows, f"branch {name}")
        found[name] = states[-1]
    ledger.branches = found


def _leftovers(table: Table, store: TableStore, left: set[str], remove: bool) -> Counter[str]:
    """Orphan removal finds the files that a plain listing finds; ``remove``: it deletes them."""
    planned = table.maintenance.remove_orphans(0, force=True, dry_run=True, engine="local")
    if planned.files != len(left):
        raise CampaignError(f"orphans: {planned.files} of {len(left)}: {planned.examples}, {sorted(left)[:10]}")
    if remove:
        before = stored(store)
        removed = table.maintenance.remove_orphans(0, force=True, engine="local")
        removed_paths = before - stored(store)
        if {path for path in removed_paths if not path.startswith("service/")} != left or removed.failures:
            raise CampaignError(f"removed: {sorted(removed_paths ^ left)[:10]}, failures {removed.failures}")
        again = table.maintenance.remove_orphans(0, force=True, dry_run=True, engine="local")
        if again.files:
            raise CampaignError(f"a second removal finds {again.examples}")
    return Counter(planned.kinds)
