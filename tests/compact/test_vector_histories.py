"""In any history of a table with deletion vectors, a key has one visible row, and it is the right one."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.compact.vector_history import ENGINES, VectorHistory
from tests.examples import examples


@pytest.mark.parametrize("engine", ENGINES)
@examples(1)
@given(st.integers(0, 2**32))
def test_a_key_has_one_unmasked_row_and_it_is_the_merge_of_its_records(
    tmp_path_factory: pytest.TempPathFactory, engine: str, seed: int
) -> None:
    """A seed determines the history, so a failure can be repeated with it."""
    root = tmp_path_factory.mktemp("history")
    history = VectorHistory(seed, engine, root / "t")
    history.run(history.rnd.randrange(3, 9))
    event(f"rows masked: {min(history.masked_rows // 20, 5) * 20} or more")
    shutil.rmtree(root)
