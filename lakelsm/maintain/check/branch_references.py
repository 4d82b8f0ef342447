"""Checks what a branch retains, and that everything it names exists, from schemas and snapshots down to files.

The newest snapshot, the oldest and the tags are checked as states; of the others, what each adds to the one before: so no
file of a retained state is left out, and none is looked at for each snapshot that has it.
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
    """Follows the references of one branch. ``proceed`` is called before each snapshot and returns whether time is left.

    ``judge_tag`` is called with the state of each tag, if given. ``named`` and ``judge_changelog`` are those
    of `StateReferences`.
    """

    def __init__(
        self,
        store: TableStore,
        stored: StoredFiles,
        findings: Findings,
        proceed: Callable[[], bool],
        *,
        named: set[str],
        judge_tag: Callable[[CheckedState], None] | None = None,
        judge_changelog: Callable[[Sequence[ManifestEntry], str], None] | None = None,
    ) -> None:
        self._store = store
        self._proceed = proceed
        self._judge_tag = judge_tag
        self._retained = BranchStates(store, findings)
        self._schemas: dict[int, TableSchema | None] = {}
        self._states = StateReferences(
            store, stored, findings, self._schemas, named=named, judge_changelog=judge_changelog
        )
        self._fingerprints: dict[str, str] = {}
        self.snapshots = self.tags = 0

    @property
    def manifests(self) -> int:
        """How many manifests have been read."""
        return self._states.manifests

    @property
    def schemas(self) -> dict[int, TableSchema]:
        """The schemas that can be read, by id."""
        return {schema_id: schema for schema_id, schema in self._schemas.items() if schema is not None}

    def replaced(self, owners: Collection[str]) -> Iterator[str]:
        """Those of some snapshots and tags that are others now: after a rollback a commit takes a removed id again."""
        for owner in self._fingerprints.keys() & owners:
            with suppress(LakelsmError, OSError):  # It was deleted, or is damaged.
                found = Snapshot.from_json(self._store.file_io.read(owner, MAX_SNAPSHOT_BYTES), owner)
                if found.fingerprint != self._fingerprints[owner]:
                    yield owner

    def follow(self) -> CheckedState | None:
        """Follow all references; return the newest snapshot of which all manifests can be read."""
        self._schemas.update(self._retained.schemas())
        snapshots, changelogs = self._retained.snapshots(), self._retained.changelogs()
        self.snapshots = len(snapshots)
        first = min([snapshot.id for snapshot in (*snapshots, *changelogs)], default=1)
        self._retained.check_consumers(first)
        newest = None
        for place, snapshot in enumerate(reversed(snapshots)):
            if not self._proceed():
                return newest
            owner = self._store.paths.snapshot_file(snapshot.id)
            is_end = newest is None or place == len(snapshots) - 1
            state = self._follow(snapshot, owner, is_end, keeps_batches=newest is None)
            newest = newest or (state if state.is_whole else None)
        for name, tagged in self._retained.tags():
            self.tags += 1
            if self._proceed():
                # A tag keeps a state; the changes of its commit go with the snapshot.
                kept = replace(tagged, changelog_manifest_list=None, changelog_record_count=None)
                judged = self._judge_tag is not None
                state = self._follow(kept, self._store.paths.tag(name), is_end=True, keeps_batches=judged)
                if self._judge_tag is not None and state.is_whole:
                    self._judge_tag(state)
        for changelog in changelogs:
            if self._proceed():
                self._states.follow_changelog(changelog, self._store.paths.changelog(changelog.id))
        return newest

    def _follow(self, snapshot: Snapshot, owner: str, is_end: bool, keeps_batches: bool) -> CheckedState:
        self._fingerprints[owner] = snapshot.fingerprint
        return self._states.follow(snapshot, owner, is_end, keeps_batches)
