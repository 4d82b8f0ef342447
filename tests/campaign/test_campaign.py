"""The checks of the campaigns detect errors; `make kills` and `make soak` run the campaigns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.campaign.ledger import Batch
from tests.campaign.processes import CampaignError
from tests.campaign.soak import WINDOW, Report, counts

COUNT = -1


def rows(batches: list[int], n: int, total: int) -> pa.Table:
    keys = [*batches, COUNT]
    return pa.table({"w": [0] * len(keys), "k": keys, "n": [*batches, n], "total": [*([1] * len(batches)), total]})


def test_rows_of_whole_batches_are_counted() -> None:
    assert counts(rows([1, 2, 3], 3, 3)) == {0: 3}
    newest = WINDOW + 5
    assert counts(rows(list(range(6, newest + 1)), newest, newest)) == {0: newest}


@pytest.mark.parametrize(
    "wrong",
    [rows([1, 3], 3, 3), rows([1, 2, 3], 3, 4), rows([1, 2, 3, 4], 3, 3), rows([1, 2, 3], 4, 4)],
    ids=["a batch is lost", "a batch is repeated", "half of a batch", "the other half"],
)
def test_lost_repeated_and_partial_batches_are_detected(wrong: pa.Table) -> None:
    with pytest.raises(CampaignError, match="writer 0"):
        counts(wrong)


def test_the_model_applies_one_batch_after_the_other() -> None:
    before = {("a", 1): 1, ("b", 1): 2}
    assert Batch("u", 1, "upsert", (("a", 1, 5),)).on(before, sums=True) == {("a", 1): 6, ("b", 1): 2}
    assert Batch("u", 1, "delete", (("a", 1, 0),)).on(before, sums=False) == {("b", 1): 2}
    assert Batch("u", 1, "overwrite", (("a", 9, 7),), "a").on(before, sums=True) == {("a", 9): 7, ("b", 1): 2}


def test_a_growing_table_is_detected_and_a_varying_one_is_accepted() -> None:
    def measured(growth: int) -> Report:
        sizes = [(10.0 * n, 500 + 40 * (n % 3) + growth * n, 70_000) for n in range(1, 60)]
        return Report(sizes=sizes, steady=130.0)

    assert measured(0).check_sizes().startswith("bounded from 130 s on")
    with pytest.raises(CampaignError, match="the table grows: files"):
        measured(8).check_sizes()
    assert "too short" in Report(sizes=[(10.0, 1, 1), (20.0, 9, 9)], steady=5.0).check_sizes()
