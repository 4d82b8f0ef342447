"""The names that a catalog opens, as in Paimon's identifiers: ``database.table``, ``database.table$branch_<name>``."""

from __future__ import annotations

from dataclasses import dataclass

from lakelsm.arguments import checked_branch, checked_file_name, checked_name, wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.format.paths import BRANCH_SEPARATOR, DATABASE_SUFFIX, MAIN_BRANCH

__all__ = ["SYSTEM_DATABASE", "TableName", "checked_database"]

#: The database of Paimon's own tables, which no user's table is in.
SYSTEM_DATABASE = "sys"


@dataclass(frozen=True)
class TableName:
    """A table of a database, and a branch of it."""

    database: str
    table: str
    branch: str = MAIN_BRANCH

    @staticmethod
    def parse(name: object, argument: str = "name") -> TableName:
        """The parts of a name. Raises InvalidInputError for what is no such name, and for the name of a system table."""
        wanted = "'database.table' as text"
        database, dot, rest = str(checked_name(argument, name, wanted)).partition(".")
        table, mark, branch = rest.partition(BRANCH_SEPARATOR)
        if not dot or "." in table:
            raise wrong_argument(argument, name, wanted)
        checked_file_name(f"the table's part of {argument}", table, "a name as in 'database.table'")
        if "$" in table or "$" in branch or database == SYSTEM_DATABASE:
            raise InvalidInputError(
                f"{argument} is {name!r}, one of Paimon's system tables, which lakelsm does not open by name: read it "
                "from its table, as table('database.table').inspect.system('files'), write "
                "'database.table$branch_name' for a branch, and create tables by a name without '$'."
            )
        branch = checked_branch(f"the branch's part of {argument}", branch) if mark else MAIN_BRANCH
        return TableName(checked_database(database), table, branch)

    @property
    def main_name(self) -> str:
        """The name of the table itself."""
        return f"{self.database}.{self.table}"


def checked_database(name: str, argument: str = "database") -> str:
    """The name of a database."""
    wanted = "the name of a database as in 'database.table'"
    if "." in checked_file_name(argument, name, wanted, affix=DATABASE_SUFFIX):
        raise wrong_argument(argument, name, f"{wanted}, without a dot")
    return name
