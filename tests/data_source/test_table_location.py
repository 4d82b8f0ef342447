"""A table is named by its path, or by its name in a warehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.data_source.table_location import TableLocation, checked_options
from lakelsm.errors import InvalidInputError


def test_a_location_opens_the_table_or_its_branch(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", {"id": "INT"}, primary_key="id", options={"bucket": "1"})
    table.branches.create("b")
    assert TableLocation.of({"path": str(tmp_path / "d.db" / "t")}).opened().name.endswith("d.db/t")
    assert TableLocation.of({"path": "d.t", "warehouse": str(tmp_path)}).opened().name == "d.t"
    branch = TableLocation.of({"path": "d.t", "warehouse": str(tmp_path), "branch": "b"}).opened()
    assert branch._store().paths.branch == "b"


def test_options_of_a_store_are_known_to_all_calls() -> None:
    assert checked_options({"FS.s3a.endpoint": "x", "A": "1"}, ("a",), "read") == {"fs.s3a.endpoint": "x", "a": "1"}
    with pytest.raises(InvalidInputError, match="option 'b': a write"):
        checked_options({"B": "1"}, ("a",), "write")
