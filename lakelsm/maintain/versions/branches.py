"""Branches: made of a table's schemas or of a tag, fast-forwarded into the main branch, renamed and deleted.

A branch has schema, snapshot and tag files of its own (docs/format.md 1). Its first schema is written last and deleted
first: without it there is no branch that opens, so a creation or deletion that stops half-way leaves none.
"""

from __future__ import annotations

from lakelsm.arguments import checked_branch
from lakelsm.epoch_time import utc_time
from lakelsm.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidInputError,
    SnapshotNotFoundError,
    TableNotFoundError,
)
from lakelsm.format.paths import MAIN_BRANCH, TablePaths, schema_id_of
from lakelsm.format.snapshot import Tag
from lakelsm.maintain.versions.tags import restorable
from lakelsm.maintenance_results import BranchInfo
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import TagStore


def branch_infos(store: TableStore) -> list[BranchInfo]:
    """What is known of each branch beside the main one, by name."""
    return [_info(store, store.paths.of_branch(name)) for name in store.branches.names()]


def create_branch(
    store: TableStore, name: str, tag: str | None, *, ignore_if_exists: bool = False, dry_run: bool = False
) -> None:
    """Make a branch with the table's schemas, and with the rows of a tag if one is given.

    Raises InvalidInputError where the branch exists or ``store`` is a branch itself, SnapshotNotFoundError without the
    tag.
    """
    require_main(store, "make a branch")
    checked_branch("name", name, new=True)
    if name in store.branches.names():
        if ignore_if_exists and store.branches.is_whole(name):
            return
        raise _taken(store, name)
    if dry_run:
        if tag is not None:
            store.tags.get(tag)
        return
    branch, newest = store.paths.of_branch(name), None
    schemas = {number: _read(store, store.paths.schema_file(number)) for number in (0, *store.schemas.ids())}
    if tag is not None:
        newest = _copy_tag(store, branch, tag).snapshot.schema_id
    for number in sorted(schemas, reverse=True):
        if number > 0 and (newest is None or number <= newest):
            _put(store, branch.schema_file(number), schemas[number])
    if not store.file_io.create_if_absent(branch.schema_file(0), schemas[0]):
        raise _taken(store, name)


def delete_branch(store: TableStore, name: str, *, dry_run: bool = False) -> None:
    """Delete a branch's own files. Its data files are orphans where nothing else names them.

    Also ends a creation or deletion that stopped half-way. Raises TableNotFoundError without the branch,
    InvalidInputError for one that reads of the table fall back to.
    """
    require_main(store, "delete a branch")
    _require_there(store, name)
    _require_no_fallback(store, name)
    if not dry_run:
        _remove(store, store.paths.of_branch(name))


def rename_branch(store: TableStore, name: str, new_name: str, *, dry_run: bool = False) -> None:
    """Give a branch another name: its files are copied, then it is deleted.

    Raises TableNotFoundError without the branch, InvalidInputError where the new name is taken.
    """
    require_main(store, "rename a branch")
    checked_branch("new_name", new_name, new=True)
    _require_there(store, name)
    _require_no_fallback(store, name)
    source, target = store.on_branch(name).paths, store.paths.of_branch(new_name)
    if new_name in store.branches.names():
        raise _taken(store, new_name)
    if dry_run:
        return
    pairs = [(source.tag_dir, target.tag_dir), (source.snapshot_dir, target.snapshot_dir)]
    pairs += [(source.changelog_dir, target.changelog_dir), (source.consumer_dir, target.consumer_dir)]
    copies: dict[str, str] = {}
    for old, new in pairs:
        names = sorted(store.file_io.list(old))
        copies.update((f"{old}/{file}", f"{new}/{file}") for file in names if not file.startswith("."))
    schemas = SchemaStore(store.file_io, source)
    copies.update((source.schema_file(number), target.schema_file(number)) for number in reversed(schemas.ids()))
    # All are read before the first is written: what cannot be read leaves no branch half-way.
    for path, data in [(new, _read(store, old)) for old, new in copies.items()]:
        _put(store, path, data)
    _remove(store, source)


def require_main(store: TableStore, what: str) -> None:
    """Raise InvalidInputError for a store of a branch: branches have no branches."""
    if store.paths.branch != MAIN_BRANCH:
        raise InvalidInputError(
            f"Table {store.name} is a branch: {what} through the table itself, {store.paths.of_branch(MAIN_BRANCH).name}."
        )


def _require_there(store: TableStore, name: str) -> None:
    names = store.branches.names()
    if checked_branch("name", name) not in names:
        known = ", ".join(names) or "none"
        raise TableNotFoundError(f"Table {store.name} has no branch {name!r}; its branches: {known}.")


def _require_no_fallback(store: TableStore, name: str) -> None:
    if store.options.scan_fallback_branch == name:
        raise InvalidInputError(
            f"Branch {name!r} is the option 'scan.fallback-branch' of table {store.name}: remove the option first."
        )


def _taken(store: TableStore, name: str) -> InvalidInputError:
    state = "" if store.branches.is_whole(name) else " half-way, from a call that stopped or is still at work"
    return InvalidInputError(
        f"Table {store.name} has branch {name!r} already{state}: choose another name or delete it first."
    )


def _copy_tag(store: TableStore, branch: TablePaths, name: str) -> Tag:
    """Put a tag and its snapshot into a branch without schemas yet; return the tag.

    The tag is looked at again afterwards: from now on the branch keeps its files, but a deletion may have begun before.
    """
    tag = store.tags.get(name)
    snapshot = restorable(store, tag.snapshot)
    snapshot_file = branch.snapshot_file(snapshot.id)
    store.file_io.create_if_absent(branch.tag(name), tag.to_json().encode())
    store.file_io.create_if_absent(snapshot_file, snapshot.to_json().encode())
    if store.tags.try_get(name) != tag or restorable(store, tag.snapshot) != snapshot:
        store.file_io.delete_dir(branch.branch_root)
        raise SnapshotNotFoundError(
            f"Tag {name!r} of table {store.name} was deleted or replaced meanwhile, or its snapshot expired: try again."
        )
    tags, snapshots = TagStore(store.file_io, branch).all(), SnapshotManager(store.file_io, branch).list()
    if tags != {name: tag} or list(snapshots) != [snapshot]:
        raise CommitConflictError(
            f"Table {store.name}: branch {branch.branch!r} is being made of something else too: delete it and try again."
        )
    return tag


def _read(store: TableStore, path: str) -> bytes:
    """Read a file that is to be copied. Raises CorruptTableError where there is none."""
    try:
        return store.file_io.read(path)
    except FileNotFoundError as error:
        raise CorruptTableError(f"{path} does not exist, or others deleted it meanwhile: restore it.") from error


def _put(store: TableStore, target: str, data: bytes) -> None:
    """Put a file in a free place. Raises CommitConflictError where somebody else put another one there."""
    if not store.file_io.create_if_absent(target, data) and store.file_io.read(target) != data:
        raise CommitConflictError(f"{target} is being made by another process too: delete the branch and try again.")


def _remove(store: TableStore, branch: TablePaths) -> None:
    store.file_io.delete(branch.schema_file(0))
    store.file_io.delete_dir(branch.branch_root)


def _info(store: TableStore, branch: TablePaths) -> BranchInfo:
    schemas = [entry for entry in store.file_io.entries(branch.schema_dir) if schema_id_of(entry.name) is not None]
    first = next((entry for entry in schemas if schema_id_of(entry.name) == 0), None)
    return BranchInfo(
        name=branch.branch,
        created=None if first is None else utc_time(first.modified, branch.schema_file(0)),
        schema_id=None if first is None else max(schema_id_of(entry.name) or 0 for entry in schemas),
        snapshot_id=SnapshotManager(store.file_io, branch).latest_id(),
    )
