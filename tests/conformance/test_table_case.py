"""The verdicts of table cases, with a small engine in memory instead of lakelsm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from tests.conformance.cases import Case, CaseKind
from tests.conformance.outcomes import Status
from tests.conformance.table_case import KindedRow, run_table_case


class MemoryTable:
    """Deduplicates on the first column and records its calls; a negative value is bad input."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.rows: dict[Any, tuple[Any, ...]] = {}
        self.calls: list[Any] = []
        self.log: list[tuple[Any, ...]] = []

    def write(self, rows: Sequence[KindedRow], options: Mapping[str, str]) -> None:
        self.calls.append(("write", dict(options)))
        for row in rows:
            if isinstance(row.values[1], int) and row.values[1] < 0:
                raise InvalidInputError("negative value")
            self.log.append((row.kind, *row.values))
            if row.kind in ("-D", "-U"):
                self.rows.pop(row.values[0], None)
            else:
                self.rows[row.values[0]] = row.values

    def compact(self, full: bool) -> None:
        self.calls.append(("compact", full))

    def read(self, where: str | None, columns: Sequence[str] | None) -> list[tuple[Any, ...]]:
        self.calls.append(("read", where))
        wanted = [self.names.index(name) for name in (columns or self.names)]
        return [tuple(row[i] for i in wanted) for row in self.rows.values()]

    def changelog(self) -> list[tuple[Any, ...]]:
        log, self.log = self.log, []
        return log


class MemoryEngine:
    """Creation fails for the option values 'unsupported', 'invalid' and 'broken', each with its own error."""

    def __init__(self) -> None:
        self.tables: list[MemoryTable] = []

    def create(self, case: Case) -> MemoryTable:
        if "unsupported" in case.body["options"].values():
            raise UnsupportedFeatureError("merge-engine 'unsupported'")
        if "invalid" in case.body["options"].values():
            raise InvalidInputError("no such option")
        if "broken" in case.body["options"].values():
            raise ZeroDivisionError("division by zero")
        self.tables.append(MemoryTable([column["name"] for column in case.body["columns"]]))
        return self.tables[-1]


def case(*steps: dict[str, Any], **body: Any) -> Case:
    columns = [{"name": "k", "type": "INT"}, {"name": "v", "type": "INT"}]
    whole = {
        "columns": columns,
        "primary_key": ["k"],
        "partition_by": [],
        "options": {},
        "steps": list(steps),
    } | body
    return Case(CaseKind.TABLE, "c", "t", whole)


def write(*rows: list[Any], kind: str = "+I", **more: Any) -> dict[str, Any]:
    return {"op": "write", "rows": [{"kind": kind, "values": row} for row in rows]} | more


def read(*expect: list[Any], where: str | None = None, **more: Any) -> dict[str, Any]:
    return {"op": "read", "where": where, "expect": list(expect)} | more


def test_a_case_passes_if_every_step_has_the_expected_result() -> None:
    engine = MemoryEngine()
    steps = [
        write([1, 10], [2, 20]),
        write([1, 11], options={"write-only": "true"}),
        read([2, 20], [1, 11]),
        write([2, 20], kind="-D"),
        {"op": "compact", "full": True},
        read([11], where="v > 1", select=["v"]),
    ]
    assert run_table_case(case(*steps), engine).status is Status.PASSED
    assert ("write", {"write-only": "true"}) in engine.tables[0].calls
    assert ("compact", True) in engine.tables[0].calls
    assert ("read", "v > 1") in engine.tables[0].calls


def test_rows_compare_as_multisets() -> None:
    assert (
        run_table_case(case(write([1, 1], [2, 1]), read([1], [1], select=["v"])), MemoryEngine()).status
        is Status.PASSED
    )
    outcome = run_table_case(case(write([1, 1], [2, 1]), read([1], select=["v"])), MemoryEngine())
    assert outcome.status is Status.FAILED
    assert (outcome.where, outcome.expected, outcome.actual) == ("step 2, read", "[[1]]", "[[1], [1]]")


def test_rows_of_another_width_fail() -> None:
    class Wide(MemoryTable):
        def read(self, where: str | None, columns: Sequence[str] | None) -> list[tuple[Any, ...]]:
            return [(1, 2, 3)]

    class WideEngine(MemoryEngine):
        def create(self, case: Case) -> MemoryTable:
            return Wide(["k", "v"])

    assert "3" in run_table_case(case(read([1, 2])), WideEngine()).message


def test_a_changelog_compares_in_order_only_if_the_case_requires_it() -> None:
    swapped = [["+I", 2, 2], ["+I", 1, 1]]
    loose = {"op": "changelog", "expect": swapped}
    assert run_table_case(case(write([1, 1], [2, 2]), loose), MemoryEngine()).status is Status.PASSED
    assert (
        run_table_case(case(write([1, 1], [2, 2]), loose | {"ordered": True}), MemoryEngine()).status
        is Status.FAILED
    )


def test_an_unsupported_feature_is_no_failure() -> None:
    outcome = run_table_case(case(read(), options={"merge-engine": "unsupported"}), MemoryEngine())
    assert (outcome.status, outcome.where) == (Status.REFUSED, "creation")
    assert "merge-engine" in outcome.message


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("fine", Status.FAILED),
        ("invalid", Status.PASSED),
        ("unsupported", Status.REFUSED),
        ("broken", Status.FAILED),
    ],
)
def test_a_create_error_must_be_an_error_of_lakelsm(value: str, status: Status) -> None:
    step = {"op": "create_error", "reason": "gist"}
    assert run_table_case(case(step, options={"bucket": value}), MemoryEngine()).status is status


def test_a_write_error_does_not_end_the_case() -> None:
    bad = {"op": "write_error", "rows": [{"kind": "+I", "values": [1, -1]}], "reason": "gist"}
    assert run_table_case(case(write([1, 1]), bad, read([1, 1])), MemoryEngine()).status is Status.PASSED
    good = {"op": "write_error", "rows": [{"kind": "+I", "values": [1, 1]}], "reason": "gist"}
    assert run_table_case(case(good), MemoryEngine()).status is Status.FAILED


def test_a_failure_at_creation_passes_only_if_the_case_expects_it() -> None:
    bad = {"op": "write_error", "rows": [{"kind": "+I", "values": [1, -1]}], "reason": "gist"}
    invalid = {"bucket": "invalid"}
    allowed = case(bad, options=invalid, may_fail_at_create=True)
    assert run_table_case(allowed, MemoryEngine()).status is Status.PASSED
    assert run_table_case(case(bad, options=invalid), MemoryEngine()).status is Status.FAILED


def test_an_unexpected_error_fails_the_case_and_not_the_run() -> None:
    class Corrupt(MemoryEngine):
        def create(self, case: Case) -> MemoryTable:
            raise CorruptTableError("manifest-1 is missing")

    outcome = run_table_case(case(read()), Corrupt())
    assert outcome.status is Status.FAILED
    assert outcome.message == "CorruptTableError: manifest-1 is missing"


def test_a_disputed_step_is_run_but_has_no_verdict() -> None:
    assert (
        run_table_case(case(write([1, 1]), read([9, 9], disputed="upstream differs")), MemoryEngine()).status
        is Status.PASSED
    )
