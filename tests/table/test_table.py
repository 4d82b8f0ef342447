"""A table as a whole: opened by its path, and written under a commit user and batch id."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError, TableNotFoundError
from lakelsm.results import CommitResult
from tests.engines import TableEngine
from tests.table_files import root_of


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Three batches of one user."""
    local = TableEngine("local")
    table = local.create(tmp_path_factory.mktemp("history"), "id INT, v INT, w STRING", ["id"])
    for batch in (1, 2, 3):
        local.write(table, [(batch, batch, "new")], commit_user="job", batch_id=batch)
    return table


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "{}/"])
def test_a_table_opens_by_its_path(history: Table, form: str) -> None:
    opened = Table.for_path(form.format(root_of(history)))
    assert opened.name == str(root_of(history))
    assert opened.schema == history.schema
    assert opened.explain().files_live == 3


def test_a_path_that_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match=str(tmp_path)):
        Table.for_path(str(tmp_path))
    with pytest.raises(TableNotFoundError, match="nowhere"):
        Table.for_path(str(tmp_path / "nowhere"))


def test_the_same_batch_again_writes_nothing(local: TableEngine, history: Table) -> None:
    again = local.write(history, [(9, 9, "x")], commit_user="job", batch_id=2)
    assert again == CommitResult(snapshot_id=2, already_committed=True)
    assert history.explain().snapshot_id == 3


@pytest.mark.parametrize("batch_id", [-1, 2**63 - 1])
def test_a_batch_id_out_of_range_is_refused(local: TableEngine, history: Table, batch_id: int) -> None:
    with pytest.raises(InvalidInputError, match="batch_id"):
        local.write(history, [], commit_user="job", batch_id=batch_id)


def test_a_batch_id_needs_its_user(local: TableEngine, history: Table) -> None:
    with pytest.raises(InvalidInputError, match="commit_user"):
        local.write(history, [], batch_id=1)
