"""A table is opened by its path."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.errors import TableNotFoundError
from tests.engines import TableEngine
from tests.table_files import root_of


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "{}/"])
def test_a_table_opens_by_its_path(tmp_path: Path, form: str) -> None:
    local = TableEngine("local")
    table = local.create(tmp_path, "id INT, v INT", ["id"])
    local.write(table, [(1, 1)])
    opened = Table.for_path(form.format(root_of(table)))
    assert opened.name == str(root_of(table))
    assert opened.schema == table.schema
    assert opened.explain().files_live == 1


def test_a_path_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match=str(tmp_path)):
        Table.for_path(str(tmp_path))
    with pytest.raises(TableNotFoundError, match="nowhere"):
        Table.for_path(str(tmp_path / "nowhere"))
