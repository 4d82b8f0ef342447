"""What must hold of a table after each kill, looked at by a process that has read nothing of it before."""

from __future__ import annotations

from collections import Counter

from lakelsm import Table
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import HOLDING_TAG
from tests.campaign.ledger import Ledger, Rows, State
from tests.campaign.places import TablePlace
from tests.campaign.processes import CampaignError, Voice
from tests.maintain.orphans.table_census import stored, unnamed_of

_STRAY = {"manifest-stray"}


def followed(say: Voice, place: TablePlace, ledger: Ledger) -> None:
    """The result is the ledger, with what snapshots, tags and branches tell, and the states; no row is read."""
    store = place.store()
    states = ledger.follow(store)
    ledger.latest = states[-1]
    ledger.check_batches(ledger.latest)
    _tags(None, store, ledger)
    _branches(None, store, ledger)
    say("result", (ledger, states))


def audit(say: Voice, place: TablePlace, ledger: Ledger, remove: bool, settled: bool) -> None:
    """The result is the ledger, with what it learned, the leftovers by kind, and the states; ``remove``: leftovers go.

    Until the table is ``settled`` a check may tell of what a kill left half-way: a hint that is behind; an expiry, of
    which what EARLIEST gave up is not to be read; a rollback; and a branch that is being made or deleted, which nobody
    can open. A hint stays behind until the next commit: a rerun that finds everything committed makes none. Manifests of
    killed commits stay until orphans are removed.
    Raises CampaignError, or whatever a read raises that may not fail.
    """
    table, store = place.opened(), place.store()
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
    # What held a snapshot for a tag stays for its time.
    allowed = {"tag-unfinished", "manifest-stray", *(["stale-hint"] if ledger.left_behind == latest else [])}
    if not settled:
        allowed |= {"expiry-unfinished", "rollback-unfinished", "branch-unfinished", "stale-hint"}
        ledger.left_behind = latest if "stale-hint" in found else None
    if found - allowed or not check.complete:
        raise CampaignError(check.as_text())
    left = unnamed_of(store, stored(store))
    strays = {finding.thing.removeprefix(f"{store.paths.root}/") for finding in check.findings if finding.rule in _STRAY}
    expected = {path for path in left if path.startswith("manifest/") and not path.endswith(".tmp")}
    # Of an expiry, rollback or tag that is half-way it may not be known which are stray.
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
    # A creation of a tag that was killed leaves one that holds its snapshot for a while.
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
    """Orphan removal finds what a plain count of names finds, and takes it where it is told to."""
    planned = table.maintenance.remove_orphans(0, force=True, dry_run=True, engine="local")
    if planned.files != len(left):
        raise CampaignError(f"orphans: {planned.files} of {len(left)}: {planned.examples}, {sorted(left)[:10]}")
    if remove:
        before = stored(store)
        removed = table.maintenance.remove_orphans(0, force=True, engine="local")
        gone = before - stored(store)
        if {path for path in gone if not path.startswith("service/")} != left or removed.failures:
            raise CampaignError(f"removed: {sorted(gone ^ left)[:10]}, failures {removed.failures}")
        again = table.maintenance.remove_orphans(0, force=True, dry_run=True, engine="local")
        if again.files:
            raise CampaignError(f"a second removal finds {again.examples}")
    return Counter(planned.kinds)
