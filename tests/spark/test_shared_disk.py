"""Tasks on machines that do not have the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import StorageError
from lakelsm.spark.shared_disk import check_shared_disk


def test_a_local_table_must_exist_where_a_task_writes(tmp_path: Path) -> None:
    check_shared_disk(str(tmp_path))
    check_shared_disk("s3://bucket/t")
    with pytest.raises(StorageError, match=r"/nowhere/t does not exist on a machine of .* Use a warehouse"):
        check_shared_disk("/nowhere/t")
