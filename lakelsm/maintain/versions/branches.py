"""Branches: created from a table's schemas or from a tag, fast-forwarded into the main branch, renamed and deleted.

A branch has its own schema, snapshot and tag files (docs/format.md 1). Its first schema is written last and deleted
first. Without it no branch can be opened, so an interrupted creation or deletion leaves no branch. The same call
completes an interrupted creation. The LATEST hint, which exists from the first commit on, is deleted before the schema: a
branch with the hint and without the schema is damaged, not incomplete.
"""

from __future__ import annotations

from collections.abc import Set

from lakelsm.arguments import checked_branch
from lakelsm.epoch_time import utc_time
from lakelsm.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidInputError,
    TableNotFoundError,
)
from lakelsm.format.file_names import schema_id_of
from lakelsm.format.paths import MAIN_BRANCH, TablePaths
from lakelsm.format.snapshot import Tag
from lakelsm.maintain.versions.tags import restorable_snapshot
from lakelsm.results import BranchInfo
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import TagStore


def branch_infos(store: TableStore) -> list[BranchInfo]:
    """Return the details of each branch, sorted by name, without the main one."""
    return [_info(store, store.paths.of_branch(name)) for name in store.branches.names()]


def create_branch(
    store: TableStore, name: str, tag: str | None, *, ignore_if_exists: bool = False, dry_run: bool = False
) -> bool:
    """Create a branch with the table's schemas and, if a tag is given, with its rows; or complete an interrupted call.

    Returns False if the branch exists and ``ignore_if_exists`` is set, else True.

    Raises InvalidInputError if the branch exists, if an interrupted call left other files under its name, or if ``store``
    is a branch itself; SnapshotNotFoundError if the tag does not exist.
    """
    require_main_branch(store, "create a branch")
    checked_branch("name", name, new=True)
    if store.branches.is_whole(name):
        if ignore_if_exists:
            return False
        raise _taken(store, name)
    branch, tagged = store.paths.of_branch(name), None if tag is None else store.tags.get(tag)
    numbers = [number for number in (0, *store.schemas.ids()) if tagged is None or number <= tagged.snapshot.schema_id]
    expected = {branch.schema_file(number) for number in numbers}
    if tag is not None and tagged is not None:
        expected |= {branch.tag(tag), branch.snapshot_file(tagged.snapshot.id)}
    _refuse_others(store, branch, expected)
    if dry_run:
        return True
    schemas = {number: _read(store, store.paths.schema_file(number)) for number in numbers}
    if tag is not None and tagged is not None:
        _copy_tag(store, branch, tag, tagged)
    for number in sorted(set(numbers) - {0}, reverse=True):
        _put(store, branch.schema_file(number), schemas[number])
    if not store.file_io.create_if_absent(branch.schema_file(0), schemas[0]) and not ignore_if_exists:
        raise _taken(store, name)
    _require_all(store, branch, expected)
    return True


def delete_branch(store: TableStore, name: str, *, dry_run: bool = False) -> None:
    """Delete a branch's own files. Its data files become orphan files if no retained state names them.

    Also completes an interrupted creation or deletion. Raises TableNotFoundError if the branch does not exist, and
    InvalidInputError if it is the fallback branch of the table's reads.
    """
    require_main_branch(store, "delete a branch")
    _require_exists(store, name)
    _require_no_fallback(store, name)
    if not dry_run:
        _remove(store, store.paths.of_branch(name))


def rename_branch(store: TableStore, name: str, new_name: str, *, dry_run: bool = False) -> None:
    """Rename a branch: copy its files, then delete it.

    An interrupted call leaves the branch unchanged, and the same call completes it. Raises TableNotFoundError if the
    branch does not exist, and InvalidInputError if a branch has the new name.
    """
    require_main_branch(store, "rename a branch")
    checked_branch("new_name", new_name, new=True)
    _require_exists(store, name)
    _require_no_fallback(store, name)
    source, target = store.on_branch(name).paths, store.paths.of_branch(new_name)
    if store.branches.is_whole(new_name):
        raise _taken(store, new_name)
    pairs = [(source.tag_dir, target.tag_dir), (source.snapshot_dir, target.snapshot_dir)]
    pairs += [(source.changelog_dir, target.changelog_dir), (source.consumer_dir, target.consumer_dir)]
    copies: dict[str, str] = {}
    for old, new in pairs:
        names = sorted(store.file_io.list(old))
        copies.update((f"{old}/{file}", f"{new}/{file}") for file in names if not file.startswith("."))
    hints = {old: copies.pop(old) for old in (source.latest_hint, source.earliest_hint) if old in copies}
    schemas = SchemaStore(store.file_io, source)
    copies.update((source.schema_file(number), target.schema_file(number)) for number in reversed(schemas.ids()))
    _refuse_others(store, target, set(copies.values()))
    if dry_run:
        return
    # All files are read before the first is written: an unreadable file leaves no incomplete branch.
    for path, data in [(new, _read(store, old)) for old, new in (copies | hints).items()]:
        _put(store, path, data)
    _require_all(store, target, set(copies.values()))
    _remove(store, source)


def require_main_branch(store: TableStore, what: str) -> None:
    """Raise InvalidInputError if a store is that of a branch: branches have no branches."""
    if store.paths.branch != MAIN_BRANCH:
        raise InvalidInputError(
            f"Table {store.name} is a branch. To {what}, open table {store.paths.of_branch(MAIN_BRANCH).name} itself."
        )


def _require_exists(store: TableStore, name: str) -> None:
    names = store.branches.names()
    if checked_branch("name", name) not in names:
        known = ", ".join(names) or "none"
        raise TableNotFoundError(f"Table {store.name}: branch {name!r} does not exist. Branches: {known}.")


def _require_no_fallback(store: TableStore, name: str) -> None:
    if store.options.scan_fallback_branch == name:
        raise InvalidInputError(
            f"Table {store.name}: branch {name!r} is the value of option 'scan.fallback-branch'. Remove the option first."
        )


def _taken(store: TableStore, name: str) -> InvalidInputError:
    exists = store.branches.is_whole(name)
    state = "already exists" if exists else "is incomplete: a call was interrupted, or is still running"
    return InvalidInputError(
        f"Table {store.name}: branch {name!r} {state}. Choose another name, or delete the branch first."
    )


def _refuse_others(store: TableStore, branch: TablePaths, expected: Set[str]) -> None:
    """Raise InvalidInputError if the branch has files other than those that are to be created."""
    if not _files(store, branch) <= expected:
        raise _taken(store, branch.branch)


def _require_all(store: TableStore, branch: TablePaths, expected: Set[str]) -> None:
    """Raise CommitConflictError if a deletion removed a part of a new branch; then the branch does not exist.

    A deletion checks afterwards for a schema that was created since, so at least one of the two sees the other.
    """
    if not expected <= _files(store, branch):
        _remove(store, branch)
        raise CommitConflictError(
            f"Table {store.name}: another process deleted branch {branch.branch!r} during its creation: run it again."
        )


def _files(store: TableStore, branch: TablePaths) -> set[str]:
    """Return the files of a branch, without those that are being written."""
    folders = [entry.name for entry in store.file_io.entries(branch.branch_root) if entry.is_directory]
    paths = {f"{branch.branch_root}/{folder}": store.file_io.list(f"{branch.branch_root}/{folder}") for folder in folders}
    return {f"{folder}/{name}" for folder, names in paths.items() for name in names if not name.startswith(".")}


def _copy_tag(store: TableStore, branch: TablePaths, name: str, tag: Tag) -> None:
    """Copy a tag and its snapshot into a branch that has no schemas yet.

    Then check the tag again: from now on the branch keeps its files, but a deletion may have begun before.
    """
    snapshot = restorable_snapshot(store, tag.snapshot)
    snapshot_file = branch.snapshot_file(snapshot.id)
    store.file_io.create_if_absent(branch.tag(name), tag.to_json().encode())
    store.file_io.create_if_absent(snapshot_file, snapshot.to_json().encode())
    if store.tags.try_get(name) != tag or restorable_snapshot(store, tag.snapshot) != snapshot:
        store.file_io.delete_dir(branch.branch_root)
        raise CommitConflictError(
            f"Table {store.name}: tag {name!r} was deleted or replaced, or its snapshot expired, during the creation of "
            f"branch {branch.branch!r}. The branch does not exist; run it again."
        )
    tags, snapshots = TagStore(store.file_io, branch).all(), SnapshotManager(store.file_io, branch).list()
    if tags != {name: tag} or list(snapshots) != [snapshot]:
        raise InvalidInputError(
            f"Table {store.name}: another process creates branch {branch.branch!r} with other content. Delete it, "
            "then create it again."
        )


def _read(store: TableStore, path: str) -> bytes:
    """Read a file that is to be copied. Raises CorruptTableError if it is missing."""
    try:
        return store.file_io.read(path)
    except FileNotFoundError as error:
        raise CorruptTableError(f"{path} does not exist, or another process deleted it: restore it.") from error


def _put(store: TableStore, target: str, data: bytes) -> None:
    """Create a file. Raises InvalidInputError if another process created it with other content."""
    if not store.file_io.create_if_absent(target, data) and store.file_io.read(target) != data:
        raise InvalidInputError(
            f"{target}: another process created it at the same time. Delete the branch, then create it again."
        )


def _remove(store: TableStore, branch: TablePaths) -> None:
    """Delete a branch. If another process completes it from the remaining files, delete it again."""
    exists = True
    while exists:
        store.file_io.delete(branch.latest_hint)
        store.file_io.delete(branch.schema_file(0))
        store.file_io.delete_dir(branch.branch_root)
        exists = store.branches.is_whole(branch.branch)


def _info(store: TableStore, branch: TablePaths) -> BranchInfo:
    schemas = [entry for entry in store.file_io.entries(branch.schema_dir) if schema_id_of(entry.name) is not None]
    first = next((entry for entry in schemas if schema_id_of(entry.name) == 0), None)
    return BranchInfo(
        name=branch.branch,
        created=None if first is None else utc_time(first.modified, branch.schema_file(0)),
        schema_id=None if first is None else max(schema_id_of(entry.name) or 0 for entry in schemas),
        snapshot_id=SnapshotManager(store.file_io, branch).latest_id(),
    )
