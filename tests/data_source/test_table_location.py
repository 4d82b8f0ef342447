"""A table is named by its path, or by its name in a warehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.data_source.table_location import TableLocation, checked_options, whole_number
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


@pytest.mark.parametrize("text", ["", "-1", "1.0", "٣", "9" * 20, "9" * 5000])
def test_a_number_has_at_most_19_digits_and_nothing_else(text: str) -> None:
    assert whole_number("n", "007", "a number") == 7
    with pytest.raises(InvalidInputError, match=r"option 'n': '.{0,40}' is not a number"):
        whole_number("n", text, "a number")
