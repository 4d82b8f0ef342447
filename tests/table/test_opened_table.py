"""What the parts of a table share."""

from __future__ import annotations

import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError


def test_a_table_is_made_of_a_store_alone() -> None:
    with pytest.raises(InvalidInputError, match="store is 'x'"):
        Table("x")  # type: ignore[arg-type]
