"""`Table.branches`: branches of a table, each with its own snapshots, tags and schemas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from lakelsm.arguments import checked_branch, checked_flag, checked_tag
from lakelsm.maintain.history import recorded
from lakelsm.maintain.versions.branches import branch_infos, create_branch, delete_branch, rename_branch
from lakelsm.maintain.versions.fast_forward import fast_forward
from lakelsm.operation_log import logged
from lakelsm.results import BranchInfo, FastForwardResult
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.opened_table import OpenedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AnyTable = TypeVar("AnyTable")


class TableBranches(OpenedTable, Generic[AnyTable]):
    """The branches of a table. ``open_table`` creates the table object of a branch."""

    def __init__(
        self, store: TableStore, spark: SparkSession | None, open_table: Callable[[TableStore], AnyTable]
    ) -> None:
        super().__init__(store, spark)
        self._open_table = open_table

    def list(self) -> Sequence[BranchInfo]:
        """Return the branches other than main, by name."""
        return branch_infos(self._store())

    def open(self, name: str) -> AnyTable:
        """Open a branch as a `Table`; 'main' is the table itself. Raises TableNotFoundError if it does not exist."""
        return self._open_table(self._opened.on_branch(checked_branch("name", name)))

    @logged("create_branch")
    def create(
        self, name: str, tag: str | None = None, *, ignore_if_exists: bool = False, dry_run: bool = False
    ) -> None:
        """Create a branch: with the rows and the schema of a ``tag``, or without one empty, with the table's schemas.

        The branch has its own snapshots, tags and schemas; no row is copied. With ``ignore_if_exists`` an existing
        branch is kept. ``dry_run`` creates nothing. Raises InvalidInputError if the branch exists, for a name that
        Paimon refuses and for a table that is a branch, SnapshotNotFoundError if the tag does not exist.
        """
        checked_branch("name", name, new=True)
        checked_tag("tag", tag)
        checked_flag("ignore_if_exists", ignore_if_exists)
        store, dry = self._store().for_changes(), checked_flag("dry_run", dry_run)
        with recorded(store, "create_branch", dry_run=dry) as run:
            run.is_recorded = create_branch(store, name, tag, ignore_if_exists=ignore_if_exists, dry_run=dry)

    @logged("rename_branch")
    def rename(self, name: str, new_name: str, *, dry_run: bool = False) -> None:
        """Rename a branch. Stop its writers first: its files are copied, then deleted.

        ``dry_run`` changes nothing. Raises TableNotFoundError if the branch does not exist, InvalidInputError if the
        new name exists or Paimon refuses it.
        """
        store = self._store().for_changes()
        old, new = checked_branch("name", name), checked_branch("new_name", new_name, new=True)
        dry = checked_flag("dry_run", dry_run)
        with recorded(store, "rename_branch", dry_run=dry):
            rename_branch(store, old, new, dry_run=dry)

    @logged("delete_branch")
    def delete(self, name: str, *, dry_run: bool = False) -> None:
        """Delete a branch: its snapshots, tags and schemas. Files that nothing else needs become orphan files.

        Stop its writers first: a concurrent commit would leave a part of the branch, which another call deletes. Also
        deletes the rest of an interrupted creation or deletion. ``dry_run`` deletes nothing. Raises TableNotFoundError
        if the branch does not exist, InvalidInputError for the branch of 'scan.fallback-branch' and for a table that is
        a branch.
        """
        store, branch = self._store().for_changes(), checked_branch("name", name)
        dry = checked_flag("dry_run", dry_run)
        with recorded(store, "delete_branch", dry_run=dry):
            delete_branch(store, branch, dry_run=dry)

    @logged("fast_forward")
    def fast_forward(self, name: str, *, dry_run: bool = False) -> FastForwardResult:
        """Make the table equal to a branch, from the branch's oldest snapshot on. The branch remains.

        As in Paimon, the table's own snapshots, tags and schema changes since then are deleted. Its older snapshots are
        kept if the branch continues them, else deleted. Stop writers of the table first: a concurrent commit may be
        lost. The next run completes an interrupted one. ``dry_run`` changes nothing. Raises TableNotFoundError if the
        branch does not exist; InvalidInputError for a branch without snapshots, for a table that is a branch, and if a
        kept snapshot or tag needs a schema that the branch lacks; CommitConflictError if other processes committed
        concurrently.
        """
        store, branch = self._store().for_changes(), checked_branch("name", name)
        dry = checked_flag("dry_run", dry_run)
        with recorded(store, "fast_forward", dry_run=dry):
            return fast_forward(store, branch, dry_run=dry)
