"""Table names that a catalog opens, as in Paimon's identifiers: ``database.table``, ``database.table$branch_<name>``."""

from __future__ import annotations

from dataclasses import dataclass

from lakelsm.arguments import checked_branch, checked_file_name, checked_name, wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.format.paths import BRANCH_SEPARATOR, DATABASE_SUFFIX, MAIN_BRANCH

__all__ = ["SYSTEM_DATABASE", "TableName", "checked_database"]

#: The database of Paimon's system tables; it has no user tables.
SYSTEM_DATABASE = "sys"


@dataclass(frozen=True)
class TableName:
    """The name of a table with its database and branch."""

    database: str
    table: str
    branch: str = MAIN_BRANCH

    @staticmethod
    def parse(name: object, argument: str = "name") -> TableName:
        """Parse a name. Raises InvalidInputError for an invalid name, and for the name of a system table."""
        wanted = "'database.table' as text"
        database, dot, rest = str(checked_name(argument, name, wanted)).partition(".")
        table, separator, branch = rest.partition(BRANCH_SEPARATOR)
        if not dot or "." in table:
            raise wrong_argument(argument, name, wanted)
        checked_file_name(f"the table's part of {argument}", table, "a name as in 'database.table'")
        if "$" in table or "$" in branch or database == SYSTEM_DATABASE:
            raise InvalidInputError(
                f"{argument}: {name!r} names a system table of Paimon, which a catalog does not open. Read it with "
                "table('database.table').inspect.system('files'), or write 'database.table$branch_name' for a branch."
            )
        branch = checked_branch(f"the branch's part of {argument}", branch) if separator else MAIN_BRANCH
        return TableName(checked_database(database), table, branch)

    @property
    def main_name(self) -> str:
        """The name without the branch, ``database.table``."""
        return f"{self.database}.{self.table}"


def checked_database(name: str, argument: str = "database") -> str:
    """Return ``name`` if it is a valid database name. Raises InvalidInputError otherwise."""
    wanted = "the name of a database as in 'database.table'"
    if "." in checked_file_name(argument, name, wanted, affix=DATABASE_SUFFIX):
        raise wrong_argument(argument, name, f"{wanted}, without a dot")
    return name
