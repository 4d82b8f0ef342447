"""Fast-forward: the main branch becomes equal to a branch, from the branch's oldest snapshot on, as in Paimon.

The main branch's own snapshots from there on are removed, so its writers should be stopped. The order of steps keeps the
table readable: newer snapshots are copied before older ones are deleted. The next call completes an interrupted one.
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
    """The state files of a branch, by id or name."""

    snapshots: Mapping[int, Snapshot]
    schemas: Mapping[int, TableSchema]
    tags: Mapping[str, Tag]

    @staticmethod
    def of(store: TableStore) -> _History:
        """Read them. Raises CorruptTableError if one cannot be read; nothing was changed then."""
        return _History(
            snapshots={snapshot.id: snapshot for snapshot in store.snapshots.list()},
            schemas={schema_id: store.schemas.get(schema_id) for schema_id in store.schemas.ids()},
            tags=store.tags.all(),
        )


def fast_forward(store: TableStore, name: str, *, dry_run: bool = False) -> FastForwardResult:
    """Make the main branch equal to a branch. The branch stays.

    Raises TableNotFoundError if the branch does not exist; InvalidInputError if it has no snapshot, or if a state that
    the main branch keeps needs a schema that differs in the branch; CommitConflictError if others committed since.
    """
    require_main_branch(store, "fast-forward")
    if name == MAIN_BRANCH:
        raise wrong_argument("name", name, "the name of a branch as text", "'main' is the table itself.")
    source = store.on_branch(name)
    branch = _History.of(source)
    if not branch.snapshots:
        raise InvalidInputError(
            f"Table {store.name}: branch {name!r} has no snapshot to fast-forward to. Write to it first."
        )
    # Read the new state of the table and everything else that changes, so that damage stops the call here.
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
        #: Tags of the main branch, of snapshots from the branch's oldest on, that the branch does not have.
        self._lost_tags = sorted(
            tag
            for tag, found in main.tags.items()
            if found.snapshot.id >= self._first and branch.tags.get(tag) != found
        )
        changed = [i for i, schema in main.schemas.items() if i in branch.schemas and branch.schemas[i] != schema]
        self._first_changed = min(changed, default=None)

    def check_kept(self, name: str) -> None:
        """Raise InvalidInputError if a snapshot or tag that stays has a schema that is deleted or replaced."""
        deleted = [i for i in self._main.schemas if i > max(self._branch.schemas)]
        first = min([*deleted, *([] if self._first_changed is None else [self._first_changed])], default=None)
        if first is None:
            return
        kept = {f"snapshot {i}": self._main.snapshots[i] for i in self._kept}
        kept |= {f"tag {tag!r}": self._main.tags[tag].snapshot for tag in self._main.tags if tag not in self._lost_tags}
        needs = next((what for what, snapshot in kept.items() if snapshot.schema_id >= first), None)
        if needs is not None:
            raise InvalidInputError(
                f"Table {self._store.name}: {needs} of the table needs a schema (from schema {first} on) that branch "
                f"{name!r} does not have, or has with other content. Delete the snapshot or tag, or write the rows of "
                "the branch to the table."
            )

    def execute(self) -> None:
        """Run the remaining steps."""
        self._file_io.delete_files([self._paths.tag(tag) for tag in self._lost_tags])
        self._replace_schemas()
        self._copy_snapshots()
        self._delete_snapshots(i for i in self._main.snapshots if i not in self._kept and i not in self._branch.snapshots)
        newest_first = sorted((i for i in self._main.schemas if i not in self._branch.schemas), reverse=True)
        for schema_id in newest_first:
            self._file_io.delete(self._paths.schema_file(schema_id))
        changelogs = [self._paths.changelog(i) for i in self._store.changelogs.ids() if i >= self._first]
        self._file_io.delete_files(changelogs)
        for tag, found in self._branch.tags.items():
            self._file_io.write(self._paths.tag(tag), found.to_json().encode())
        self._remove_deleted_since()
        self._finish()

    def result(self, name: str, dry_run: bool) -> FastForwardResult:
        """Return the changes that were made, or that a real run would make."""
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
        """Return the older snapshots of the main branch that stay: all or none, because no reader passes a gap of ids."""
        older = frozenset(i for i in self._main.snapshots if i < self._first)
        return older if not older or max(older) == self._first - 1 else frozenset()

    def _replace_schemas(self) -> None:
        """Copy the branch's schemas. Snapshots of a schema that is replaced are deleted first."""
        first = self._first_changed
        if first is not None:
            self._delete_snapshots(
                i for i, found in self._main.snapshots.items() if i not in self._kept and found.schema_id >= first
            )
        for schema_id, schema in sorted(self._branch.schemas.items()):
            if self._main.schemas.get(schema_id) != schema:  # Byte for byte: the branch's snapshots have its checksum.
                data = self._file_io.read(self._source.paths.schema_file(schema_id))
                self._file_io.write(self._paths.schema_file(schema_id), data)

    def _copy_snapshots(self) -> None:
        newest = max(self._main.snapshots, default=0)
        for snapshot_id, snapshot in sorted(self._branch.snapshots.items()):
            if self._main.snapshots.get(snapshot_id) == snapshot:
                continue
            path, data = self._paths.snapshot_file(snapshot_id), snapshot.to_json().encode()
            if snapshot_id <= newest:
                self._file_io.write(path, data)
            elif not self._file_io.create_if_absent(path, data) and self._file_io.read(path) != data:
                raise self._conflict()

    def _delete_snapshots(self, ids: Iterable[int]) -> None:
        """Delete snapshots, the newest first. The hint is deleted first: other engines fail on one that is too high."""
        newest_first = sorted(ids, reverse=True)
        if newest_first:
            self._file_io.delete(self._paths.latest_hint)
        for snapshot_id in newest_first:
            self._file_io.delete(self._paths.snapshot_file(snapshot_id))

    def _remove_deleted_since(self) -> None:
        """Remove the snapshots and tags that the branch has deleted since, whose files may be deleted; then raise.

        A later deletion of the branch keeps their files: an expiry writes EARLIEST, and a tag is deleted, before the
        needs of other states are read.
        """
        earliest = self._source.snapshots.earliest_id() or self._first
        tags = self._source.tags.all()
        main = self._main.tags
        deleted = [tag for tag, found in self._branch.tags.items() if found not in (tags.get(tag), main.get(tag))]
        if earliest == self._first and not deleted:
            return
        self._file_io.delete_files([self._paths.tag(tag) for tag in deleted])
        self._delete_snapshots(
            i for i, found in self._branch.snapshots.items() if i < earliest and self._main.snapshots.get(i) != found
        )
        raise self._conflict()

    def _finish(self) -> None:
        """Set hints and consumers to the new snapshots, and check that no other commit happened."""
        expected = sorted({*self._kept, *self._branch.snapshots})
        self._file_io.write(self._paths.latest_hint, str(expected[-1]).encode(), durable=False)
        self._file_io.write(self._paths.earliest_hint, str(expected[0]).encode(), durable=False)
        reset_consumers_beyond(self._store, self._last + 1)
        if list(self._store.snapshots.ids()) != expected:
            raise self._conflict()

    def _conflict(self) -> CommitConflictError:
        return CommitConflictError(
            f"Table {self._store.name}: during the fast-forward, others committed to it, or expired or deleted snapshots "
            "or tags of the branch. Stop them and run it again."
        )
