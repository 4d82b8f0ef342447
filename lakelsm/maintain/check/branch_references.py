"""Checks that everything that a branch retains exists, from schemas and snapshots down to files.

The newest snapshot, the oldest one and the tags are checked as whole states. Of the other snapshots, only the files that
each one adds are checked. So every file of a retained state is checked, and no file is checked once per snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from lakelsm.errors import LakelsmError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.check.branch_states import BranchStates
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.manifests import StoredFiles
from lakelsm.maintain.check.state_references import CheckedState, StateReferences
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.snapshot_manager import MAX_SNAPSHOT_BYTES
from lakelsm.snapshots.table_store import TableStore


class BranchReferences:
    """Follows the references of one branch. It calls ``has_time`` before each snapshot and stops if that returns False.

    It calls ``check_tag``, if given, with the state of each tag. ``named`` and ``check_changelog`` are arguments of
    `StateReferences`.
    """

    def __init__(
        self,
        store: TableStore,
        stored: StoredFiles,
        findings: Findings,
        has_time: Callable[[], bool],
        *,
        named: set[str],
        check_tag: Callable[[CheckedState], None] | None = None,
        check_changelog: Callable[[Sequence[ManifestEntry], str], None] | None = None,
    ) -> None:
        self._store = store
        self._has_time = has_time
        self._check_tag = check_tag
        self._retained = BranchStates(store, findings)
        self._schemas: dict[int, TableSchema | None] = {}
        self._states = StateReferences(
            store, stored, findings, self._schemas, named=named, check_changelog=check_changelog
        )
        self._fingerprints: dict[str, str] = {}
        self.snapshots = self.tags = 0

    @property
    def manifests(self) -> int:
        """The number of manifests read."""
        return self._states.manifests

    @property
    def schemas(self) -> dict[int, TableSchema]:
        """The readable schemas, by id."""
        return {schema_id: schema for schema_id, schema in self._schemas.items() if schema is not None}

    def replaced(self, owners: Collection[str]) -> Iterator[str]:
        """Yield the given snapshots and tags that were replaced since: after a rollback, a commit reuses a removed id."""
        for owner in self._fingerprints.keys() & owners:
            with suppress(LakelsmError, OSError):  # The file was deleted, or is damaged.
                found = Snapshot.from_json(self._store.file_io.read(owner, MAX_SNAPSHOT_BYTES), owner)
                if found.fingerprint != self._fingerprints[owner]:
                    yield owner

    def follow(self) -> CheckedState | None:
        """Follow all references. Return the newest snapshot of which all manifests can be read."""
        self._schemas.update(self._retained.schemas())
        snapshots, changelogs = self._retained.snapshots(), self._retained.changelogs()
        self.snapshots = len(snapshots)
        first = min([snapshot.id for snapshot in (*snapshots, *changelogs)], default=1)
        self._retained.check_consumers(first)
        newest = None
        for index, snapshot in enumerate(reversed(snapshots)):
            if not self._has_time():
                return newest
            owner = self._store.paths.snapshot_file(snapshot.id)
            is_end = newest is None or index == len(snapshots) - 1
            state = self._follow(snapshot, owner, is_end, keeps_batches=newest is None)
            newest = newest or (state if state.is_whole else None)
        for name, tagged in self._retained.tags():
            self.tags += 1
            if self._has_time():
                # A tag keeps a state. The changelog of its commit expires with the snapshot.
                kept = replace(tagged, changelog_manifest_list=None, changelog_record_count=None)
                checked = self._check_tag is not None
                state = self._follow(kept, self._store.paths.tag(name), is_end=True, keeps_batches=checked)
                if self._check_tag is not None and state.is_whole:
                    self._check_tag(state)
        for changelog in changelogs:
            if self._has_time():
                self._states.follow_changelog(changelog, self._store.paths.changelog(changelog.id))
        return newest

    def _follow(self, snapshot: Snapshot, owner: str, is_end: bool, keeps_batches: bool) -> CheckedState:
        self._fingerprints[owner] = snapshot.fingerprint
        return self._states.follow(snapshot, owner, is_end, keeps_batches)
