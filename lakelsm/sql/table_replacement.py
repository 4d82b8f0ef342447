"""CREATE OR REPLACE TABLE: the new table is created and written under another name, and takes the name of the old one."""

from __future__ import annotations

from collections.abc import Callable

from lakelsm.environment import SYSTEM
from lakelsm.errors import LakelsmError, UnsupportedFeatureError
from lakelsm.failures import warn_after_commit
from lakelsm.sql.context import SqlCatalog
from lakelsm.storage.object_location import is_object_uri
from lakelsm.table.table import Table


def replace_table(catalog: SqlCatalog, name: str, create: Callable[[str], object]) -> Table:
    """Replace a table by the one that ``create`` makes under the name that it is given.

    A failure leaves the old table. A crash between the two renames leaves both tables under other names. Raises
    UnsupportedFeatureError on an object store, which cannot rename directories, and as ``create`` does.
    """
    if is_object_uri(catalog.table(name)._store().paths.root):
        raise UnsupportedFeatureError(
            f"SQL: CREATE OR REPLACE TABLE {name}: an object store cannot rename tables. Use DROP TABLE and CREATE TABLE."
        )
    number = SYSTEM.new_uuid()[:8]
    new, old = f"{name}_new_{number}", f"{name}_old_{number}"
    try:
        create(new)
    except LakelsmError as error:
        error.args = (str(error).replace(new, name),)
        raise
    try:
        catalog.rename_table(name, old)
    except LakelsmError:
        catalog.drop_table(new)
        raise
    try:
        table = catalog.rename_table(new, name)
    except LakelsmError:
        catalog.rename_table(old, name)
        catalog.drop_table(new)
        raise
    try:
        catalog.drop_table(old)
    except LakelsmError as error:
        warn_after_commit(f"Table {name} is replaced, and its old files remain: {error} Drop table {old}.")
    return table
