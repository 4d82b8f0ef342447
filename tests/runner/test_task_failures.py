"""Failures of tasks in this process become errors of lakelsm."""

from __future__ import annotations

import errno

import pyarrow as pa
import pytest

from lakelsm.errors import (
    CorruptTableError,
    InvalidInputError,
    LakelsmError,
    OutOfMemoryError,
    StorageError,
    UnsupportedFeatureError,
)
from lakelsm.runner.task_failures import known_failure


@pytest.mark.parametrize(
    "error, kind, text",
    [
        (OSError(errno.ENOSPC, "No space left on device"), StorageError, "Free disk space"),
        (OSError(errno.EIO, "Input/output error"), StorageError, "Fix the cause"),
        (MemoryError(), OutOfMemoryError, "max_task_memory"),
        (pa.ArrowMemoryError("malloc of size 64 failed"), OutOfMemoryError, "malloc of size 64 failed"),
        (pa.ArrowNotImplementedError("no kernel"), UnsupportedFeatureError, "no kernel"),
        (pa.ArrowCapacityError("array of 3 GB"), UnsupportedFeatureError, "array of 3 GB"),
        (pa.ArrowInvalid("offset\n out of range"), CorruptTableError, "offset out of range"),
    ],
)
def test_errors_of_the_machine_name_the_table_and_the_remedy(
    error: Exception, kind: type[LakelsmError], text: str
) -> None:
    raised = known_failure(error, "/wh/d.db/t")
    assert type(raised) is kind
    assert "/wh/d.db/t" in str(raised) and text in str(raised) and "\n" not in str(raised)


@pytest.mark.parametrize("error", [InvalidInputError("no such column"), TypeError("a defect"), SystemExit(3)], ids=repr)
def test_errors_of_lakelsm_and_defects_are_not_converted(error: BaseException) -> None:
    assert known_failure(error, "/wh/d.db/t") is error
