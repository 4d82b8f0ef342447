"""A disk that is full under Spark itself is told in lakelsm's words."""

from __future__ import annotations

import pytest

from lakelsm.errors import StorageError
from lakelsm.spark.task_errors import lakelsm_error


@pytest.mark.parametrize("reason", ["No space left on device", "Disk quota exceeded"])
def test_a_spill_that_finds_no_room_names_sparks_directory(reason: str) -> None:
    text = f"org.apache.spark.SparkException: Job aborted.\n\tat a.b\nCaused by: java.io.IOException: {reason}\n"
    error = lakelsm_error(text, "/warehouse/d.db/t")
    assert isinstance(error, StorageError)
    assert reason in str(error) and "spark.local.dir" in str(error)
