"""The merge engine `first-row`: the first record of a key is its row, and later records change nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.format.row_kinds import is_retract
from lakelsm.merge.engine_result import EngineResult
from lakelsm.merge.grouped_rows import GroupedRows
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.schema.system_columns import VALUE_KIND


def merge_first_row(table: pa.Table, groups: GroupedRows, spec: MergeSpec) -> EngineResult:
    """Return the first record of each contested key that is not a retraction.

    Raises InvalidInputError for a retraction unless the table ignores them.
    """
    kinds = table.column(VALUE_KIND).take(pa.array(groups.rows)).combine_chunks()
    retracts = is_retract(kinds)
    if retracts.any() and not spec.ignore_delete:
        raise retractions_refused()
    first = groups.first(~retracts)
    return EngineResult(groups.rows[np.maximum(first, 0)], {}, first >= 0)


def retractions_refused() -> InvalidInputError:
    """Return the error for a -U or -D in a table of this engine."""
    return InvalidInputError(
        "option 'merge-engine' = 'first-row': rows of kind -U or -D are refused. Set 'ignore-delete' = 'true' to drop "
        "them."
    )
