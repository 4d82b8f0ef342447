"""Tables of cases."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from lakelsm import Catalog, DataField, Table
from tests.conformance.cases import Case
from tests.conformance.values import case_ddl

#: A table whose key lacks a partition column is refused without this option (docs/keys.md).
KEY_PER_PARTITION = "lakelsm.key-per-partition"


class CaseTables:
    """Creates a table for each case."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._numbers = itertools.count(1)

    def create(self, case: Case) -> Table:
        """Create a table with the columns, keys and options of the case.

        If the key of one of Paimon's cases lacks a partition column with fixed buckets, it has a row in each partition.
        """
        body = case.body
        options = dict(body["options"])
        key, by = set(body["primary_key"]), set(body["partition_by"])
        if key and not by <= key and int(options.get("bucket", -1)) > 0:
            options[KEY_PER_PARTITION] = "true"
        return self._catalog.create_table(
            f"conformance.case_{next(self._numbers)}",
            case_ddl(body["columns"]),
            primary_key=body["primary_key"],
            partition_by=body["partition_by"],
            options=options,
        )


def free_name(fields: Sequence[DataField]) -> str:
    """Return a name for the column of row kinds that no column of the table has."""
    names = [field.name for field in fields]
    return next(name for name in ("op", "op_", "op__") if name not in names)
