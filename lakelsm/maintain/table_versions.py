"""The face of a table's versions: which snapshots stay, and the tags and branches that name them."""

from __future__ import annotations

from typing import TypeVar

from lakelsm.arguments import checked_branch, checked_flag, checked_tag
from lakelsm.maintain.branches import branch_infos, create_branch, delete_branch, rename_branch
from lakelsm.maintain.fast_forward import fast_forward
from lakelsm.maintain.opened_table import OpenedTable
from lakelsm.maintenance_results import BranchInfo, FastForwardResult

AnyTable = TypeVar("AnyTable", bound="TableVersions")


class TableVersions(OpenedTable):
    """Expiry, tags, branches, rollback and consumers of a table."""

    # -- branches --------------------------------------------------------------------------------------------------

    def create_branch(self, name: str, tag: str | None = None, *, ignore_if_exists: bool = False) -> None:
        """Make a branch: with the rows and schema of a tag, or without one empty, with the table's schemas.

        It shares no snapshot, tag or schema with the table from then on, and no row is copied. With ``ignore_if_exists``
        a branch that is there stays as it is. Raises InvalidInputError where it exists, for a name that Paimon refuses
        and for a table that is a branch itself, SnapshotNotFoundError without the tag.
        """
        checked_branch("name", name, new=True)
        checked_tag("tag", tag)
        create_branch(self._store(), name, tag, ignore_if_exists=checked_flag("ignore_if_exists", ignore_if_exists))

    def branch(self: AnyTable, name: str) -> AnyTable:
        """Open a branch, a table like any other; 'main' is the table itself. Raises TableNotFoundError without it."""
        return type(self)(self._opened.on_branch(checked_branch("name", name)), self._spark)

    def branches(self) -> list[BranchInfo]:
        """The branches beside the main one, by name."""
        return branch_infos(self._store())

    def fast_forward(self, name: str) -> FastForwardResult:
        """Make the table what a branch is, from the branch's oldest snapshot on. The branch stays.

        As in Paimon, snapshots, tags and schema changes that the table has of its own since then are dropped, and its
        older snapshots stay, unless those of the branch do not follow on them. Let nobody write to the table meanwhile:
        who does may lose the commit. A run that stopped half-way is finished by the next. Raises TableNotFoundError
        without the branch, InvalidInputError for one without snapshots, for a table that is a branch itself, and where a
        snapshot or tag that stays needs a schema that the branch has not, CommitConflictError where others committed
        meanwhile.
        """
        return fast_forward(self._store(), checked_branch("name", name))

    def rename_branch(self, name: str, new_name: str) -> None:
        """Give a branch another name. Let nobody write to it meanwhile: its files are copied, then deleted.

        Raises TableNotFoundError without the branch, InvalidInputError where the new name is taken or refused.
        """
        rename_branch(self._store(), checked_branch("name", name), checked_branch("new_name", new_name, new=True))

    def delete_branch(self, name: str) -> None:
        """Delete a branch: its snapshots, tags and schemas. Files that nothing else needs are orphans then.

        Also clears away what a creation or deletion left that stopped half-way. Raises TableNotFoundError without the
        branch, InvalidInputError for the option 'scan.fallback-branch' and for a table that is a branch itself.
        """
        delete_branch(self._store(), checked_branch("name", name))
