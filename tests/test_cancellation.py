"""Cancelled work ends at its next check and leaves nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.cancellation import WorkCancelled, cancelled_by, raise_if_cancelled
from tests.compact.local_table import LocalTable


def test_work_ends_at_a_check_and_only_while_it_is_cancelled() -> None:
    raise_if_cancelled()
    with cancelled_by(lambda: False):
        raise_if_cancelled()
        with pytest.raises(WorkCancelled), cancelled_by(lambda: True):
            raise_if_cancelled()
        raise_if_cancelled()


def test_other_threads_continue() -> None:
    ended = []

    def work() -> None:
        raise_if_cancelled()
        ended.append(True)

    with cancelled_by(lambda: True):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert ended == [True]


def test_a_cancelled_compaction_ends_within_a_step_and_leaves_nothing(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "id BIGINT NOT NULL, v STRING")
    for _ in range(2):
        table.write_columns(pa.table({"id": list(range(20_000)), "v": ["x"] * 20_000}))
    before, asked = table.data_files(), []

    def unwanted() -> bool:
        asked.append(True)
        return len(asked) > 4

    with pytest.raises(WorkCancelled), cancelled_by(unwanted):
        table.compact()
    assert len(asked) == 5
    assert table.data_files() == before
