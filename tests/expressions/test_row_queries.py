"""Queries of DuckDB on rows: their order, several threads, errors, and no way to files."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.expressions.row_queries import values_of


def numbers(start: int, count: int) -> pa.Table:
    return pa.table({"c0": pa.array(np.arange(start, start + count), pa.int64())})


def test_values_are_in_the_order_of_the_rows() -> None:
    rows = pa.concat_tables([numbers(0, 300_000), numbers(7, 1), numbers(0, 0), numbers(300_000, 123_457)])
    found = values_of("(c0 * 2)", rows, "x")
    assert found.to_numpy().tolist() == (rows["c0"].to_numpy() * 2).tolist()
    guarded = values_of("CASE WHEN c0 % 2 = 0 THEN c0 IN (2, 4, 6, 8, 10, 12, 14, 16, 18) END", rows, "x")
    listed = np.isin(rows["c0"].to_numpy(), range(2, 20, 2))
    assert guarded.fill_null(False).to_numpy().tolist() == listed.tolist()


def test_threads_see_their_own_rows() -> None:
    start = Barrier(4)

    def run(number: int) -> list[list[int]]:
        start.wait()
        return [values_of("(c0 + 1)", numbers(number * 1000 + at, 5), "x").to_pylist() for at in range(100)]

    with ThreadPoolExecutor(4) as pool:
        for number, found in enumerate(pool.map(run, range(4))):
            assert found == [[number * 1000 + at + each + 1 for each in range(5)] for at in range(100)]


def test_rows_are_freed_after_a_query() -> None:
    before = pa.total_allocated_bytes()
    rows = pa.table({"c0": pa.array(range(1_000_000))})
    values_of("(c0 > 5)", rows, "x")
    del rows
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_more_queries_than_a_thread_keeps_and_other_schemas() -> None:
    for at in range(40):
        assert values_of(f"(c0 + {at})", numbers(at, 1), "x").to_pylist() == [2 * at]
    assert values_of("(c0 + 1)", numbers(3, 1).cast(pa.schema([("c0", pa.int32())])), "x").to_pylist() == [4]
    assert values_of("(c0 + 1)", numbers(3, 1), "x").to_pylist() == [4]


def test_an_error_leaves_the_query_usable() -> None:
    for _ in range(2):
        with pytest.raises(InvalidInputError, match=r"^condition 'x': "):
            values_of("(c0 + 9223372036854775807)", numbers(1, 5), "condition 'x'")
        assert values_of("(c0 + 9223372036854775807)", numbers(-1, 1), "x").to_pylist() == [2**63 - 2]


@pytest.mark.parametrize(
    "sql",
    [
        "(SELECT count(*) FROM read_csv('{path}'))",
        "(SELECT content FROM read_text('{path}'))",
        "getenv('HOME')",
        "(SELECT count(*) FROM '{path}')",
        "(SELECT count(*) FROM rows)",
    ],
)
def test_a_query_reaches_no_file_and_no_variable(sql: str, tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n")
    rows = numbers(0, 1)
    with pytest.raises(InvalidInputError):
        values_of(sql.format(path=path), rows, "x")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_database_of_its_own() -> None:
    assert values_of("(c0 + 1)", numbers(1, 1), "x").to_pylist() == [2]
    child = os.fork()
    if not child:
        os._exit(0 if values_of("(c0 + 1)", numbers(5, 1), "x").to_pylist() == [6] else 1)
    assert os.waitpid(child, 0)[1] == 0
