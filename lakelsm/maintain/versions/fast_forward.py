"""Fast-forward: the main branch becomes equal to a branch, from the branch's oldest snapshot on, as in Paimon.

The main branch's own snapshots from there on are dropped, so its writers should be stopped. The order of
the steps keeps the table readable: newer snapshots are copied before older ones are deleted. The next run completes an
interrupted one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakelsm.arguments import wrong_argument
from lakelsm.errors import CommitConflictError, InvalidInputError
from lakelsm.format.paths import MAIN_BRANCH, TablePaths
from lakelsm.format.snapshot import Snapshot, Tag
from lakelsm.maintain.versions.branches import require_main_branch
from lakelsm.maintain.versions.consumers import reset_consumers_beyond
from lakelsm.results import FastForwardResult
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.manifest_scan import read_manifest_metas
from lakelsm.snapshots.table_store import TableStore


@dataclass(frozen=True, kw_only=True)
class _History:
    """What a branch consists of, by id or name."""

    snapshots: Mapping[int, Snapshot]
    schemas: Mapping[int, TableSchema]
    tags: Mapping[str, Tag]

    @staticmethod
    def of(store: TableStore) -> _History:
        """Read it all. Raises CorruptTableError where a part cannot be read: nothing was changed then."""
        return _History(
            snapshots={snapshot.id: snapshot for snapshot in store.snapshots.list()},
            schemas={schema_id: store.schemas.get(schema_id) for schema_id in store.schemas.ids()},
            tags=store.tags.all(),
        )


def fast_forward(store: TableStore, name: str, *, dry_run: bool = False) -> FastForwardResult:
    """Make the main branch what a branch is; the branch stays.

    Raises TableNotFoundError without the branch, InvalidInputError where it has no snapshot or if what the main branch
    keeps needs schemas that differ in the branch, CommitConflictError if others committed since: run it again.
    """
    require_main_branch(store, "fast-forward")
    if name == MAIN_BRANCH:
        raise wrong_argument("name", name, "the name of a branch as text", "'main' is the table itself.")
    source = store.on_branch(name)
    branch = _History.of(source)
    if not branch.snapshots:
        raise InvalidInputError(
            f"Branch {name!r} of table {store.name} has no snapshot to fast-forward to: write to it first."
        )
    # The state that the table gets, and what else is changed: what cannot be read stops it here.
    read_manifest_metas(store.file_io, store.paths, branch.snapshots[max(branch.snapshots)])
    store.consumers.all()
    store.changelogs.list()
    run = _FastForward(store, _History.of(store), source, branch)
    run.check_kept(name)
    if not dry_run:
        run.execute()
    return run.result(name, dry_run)


class _FastForward:
    """The steps of one fast-forward."""

    def __init__(self, store: TableStore, main: _History, source: TableStore, branch: _History) -> None:
        self._store = store
        self._source = source
        self._file_io = store.file_io
        self._paths: TablePaths = store.paths
        self._main = main
        self._branch = branch
        self._first, self._last = min(branch.snapshots), max(branch.snapshots)
        self._kept = self._kept_snapshots()
        #: Tags of the main branch of snapshots that the branch has in its own way.
        self._lost_tags = sorted(
            tag
            for tag, found in main.tags.items()
            if found.snapshot.id >= self._first and branch.tags.get(tag) != found
        )
        changed = [i for i, schema in main.schemas.items() if i in branch.schemas and branch.schemas[i] != schema]
        self._first_changed = min(changed, default=None)

    def check_kept(self, name: str) -> None:
        """Raise InvalidInputError where a snapshot or tag that stays was written in a schema that goes or changes."""
        gone = [i for i in self._main.schemas if i > max(self._branch.schemas)]
        first = min([*gone, *([] if self._first_changed is None else [self._first_changed])], default=None)
        if first is None:
            return
        kept = {f"snapshot {i}": self._main.snapshots[i] for i in self._kept}
        kept |= {f"tag {tag!r}": self._main.tags[tag].snapshot for tag in self._main.tags if tag not in self._lost_tags}
        needs = next((what for what, snapshot in kept.items() if snapshot.schema_id >= first), None)
        if needs is not None:
            raise InvalidInputError(
                f"Table {self._store.name} cannot be fast-forwarded to branch {name!r}: {needs} of the table has a "
                f"schema (from schema {first} on) that the branch has not, or has otherwise. Delete it, or write the "
                "rows of the branch to the table."
            )

    def execute(self) -> None:
        """Do what is left to do."""
        self._file_io.delete_files([self._paths.tag(tag) for tag in self._lost_tags])
        self._replace_schemas()
        self._take_snapshots()
        self._drop_snapshots(i for i in self._main.snapshots if i not in self._kept and i not in self._branch.snapshots)
        newest_first = sorted((i for i in self._main.schemas if i not in self._branch.schemas), reverse=True)
        for schema_id in newest_first:
            self._file_io.delete(self._paths.schema_file(schema_id))
        changelogs = [self._paths.changelog(i) for i in self._store.changelogs.ids() if i >= self._first]
        self._file_io.delete_files(changelogs)
        for tag, found in self._branch.tags.items():
            self._file_io.write(self._paths.tag(tag), found.to_json().encode())
        self._drop_what_went()
        self._finish()

    def result(self, name: str, dry_run: bool) -> FastForwardResult:
        """What was done, or would be."""
        before, after = self._main, self._branch
        return FastForwardResult(
            table=self._store.name,
            dry_run=dry_run,
            branch=name,
            snapshot_id=self._last,
            snapshots_added=sum(before.snapshots.get(i) != snapshot for i, snapshot in after.snapshots.items()),
            snapshots_removed=sum(
                i not in self._kept and after.snapshots.get(i) != snapshot for i, snapshot in before.snapshots.items()
            ),
            tags_added=tuple(tag for tag, found in after.tags.items() if before.tags.get(tag) != found),
            tags_removed=tuple(tag for tag in self._lost_tags if tag not in after.tags),
        )

    def _kept_snapshots(self) -> frozenset[int]:
        """Older snapshots of the main branch. They go where the branch's do not follow them: no reader passes a gap."""
        older = frozenset(i for i in self._main.snapshots if i < self._first)
        return older if not older or max(older) == self._first - 1 else frozenset()

    def _replace_schemas(self) -> None:
        """Bring in the branch's schemas. Snapshots of a schema that changes go first: it would not be theirs."""
        first = self._first_changed
        if first is not None:
            self._drop_snapshots(
                i for i, found in self._main.snapshots.items() if i not in self._kept and found.schema_id >= first
            )
        for schema_id, schema in sorted(self._branch.schemas.items()):
            if self._main.schemas.get(schema_id) != schema:  # As it is: snapshots of the branch have its checksum.
                data = self._file_io.read(self._source.paths.schema_file(schema_id))
                self._file_io.write(self._paths.schema_file(schema_id), data)

    def _take_snapshots(self) -> None:
        newest = max(self._main.snapshots, default=0)
        for snapshot_id, snapshot in sorted(self._branch.snapshots.items()):
            if self._main.snapshots.get(snapshot_id) == snapshot:
                continue
            path, data = self._paths.snapshot_file(snapshot_id), snapshot.to_json().encode()
            if snapshot_id <= newest:
                self._file_io.write(path, data)
            elif not self._file_io.create_if_absent(path, data) and self._file_io.read(path) != data:
                raise self._raced()

    def _drop_snapshots(self, ids: Iterable[int]) -> None:
        """The newest first, and the hint before them: other engines fail on one that is too high."""
        newest_first = sorted(ids, reverse=True)
        if newest_first:
            self._file_io.delete(self._paths.latest_hint)
        for snapshot_id in newest_first:
            self._file_io.delete(self._paths.snapshot_file(snapshot_id))

    def _drop_what_went(self) -> None:
        """Remove what the branch itself deleted since: its files may be deleted. What it deletes from now on is kept.

        An expiry writes EARLIEST, and a tag is deleted, before the needs of other states are read.
        """
        begun = self._source.snapshots.earliest_id() or self._first
        tags = self._source.tags.all()
        went = [tag for tag, found in self._branch.tags.items() if found not in (tags.get(tag), self._main.tags.get(tag))]
        if begun == self._first and not went:
            return
        self._file_io.delete_files([self._paths.tag(tag) for tag in went])
        self._drop_snapshots(
            i for i, found in self._branch.snapshots.items() if i < begun and self._main.snapshots.get(i) != found
        )
        raise self._raced()

    def _finish(self) -> None:
        """Set hints and consumers to the present snapshots, and check that no other commit happened."""
        expected = sorted({*self._kept, *self._branch.snapshots})
        self._file_io.write(self._paths.latest_hint, str(expected[-1]).encode(), durable=False)
        self._file_io.write(self._paths.earliest_hint, str(expected[0]).encode(), durable=False)
        reset_consumers_beyond(self._store, self._last + 1)
        if list(self._store.snapshots.ids()) != expected:
            raise self._raced()

    def _raced(self) -> CommitConflictError:
        return CommitConflictError(
            f"Table {self._store.name}: others committed to it, or let snapshots or tags of the branch go, during the "
            "fast-forward. Stop them and run it again."
        )
