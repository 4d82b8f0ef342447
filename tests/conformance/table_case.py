"""Table cases: create a table, then write, compact and read it step by step, and judge each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakelsm.errors import LakelsmError, UnsupportedFeatureError
from lakelsm.types import AtomicType, DataField, DataType
from tests.conformance.cases import Case
from tests.conformance.outcomes import Outcome, Status
from tests.conformance.values import Comparison, case_fields, comparable_rows, from_notation, show

_KIND = AtomicType("VARCHAR", length=2)


@dataclass(frozen=True)
class KindedRow:
    """A row to write: its kind (+I, -U, +U, -D) and its Python values."""

    kind: str
    values: tuple[Any, ...]


class EngineTable(Protocol):
    """A table under test. Rows are tuples of Python values, in the order of the requested columns."""

    def write(self, rows: Sequence[KindedRow], options: Mapping[str, str]) -> None:
        """Commit the rows in this order; `options` override those of the table for this commit."""

    def compact(self, full: bool) -> None:
        """Run a dedicated compaction: of every bucket (`full`), or one ordinary pick."""

    def read(self, where: str | None, columns: Sequence[str] | None) -> list[tuple[Any, ...]]:
        """Return the rows of the latest snapshot."""

    def changelog(self) -> list[tuple[Any, ...]]:
        """Return the changelog rows (kind, values…) since the last call, in order."""


class Engine(Protocol):
    """Creates tables."""

    def create(self, case: Case) -> EngineTable:
        """Create a table with the columns, keys and options of the case."""


class _Mismatch(Exception):
    """The verdict of a failed step."""

    def __init__(self, message: str, expected: str | None = None, actual: str | None = None) -> None:
        super().__init__(message)
        self.expected, self.actual = expected, actual


def run_table_case(case: Case, engine: Engine) -> Outcome:
    """Run all steps up to the first that fails or is refused."""
    steps = case.body["steps"]
    where = "creation"
    try:
        if _judge_creation(case) == "create_error":
            _expect_error("creating the table", lambda: engine.create(case))
            return Outcome(case, Status.PASSED)
        try:
            table = engine.create(case)
        except UnsupportedFeatureError:
            raise
        except LakelsmError:
            if case.body.get("may_fail_at_create"):
                return Outcome(case, Status.PASSED)
            raise
        run = _Run(case, table)
        for number, step in enumerate(steps, start=1):
            where = f"step {number}, {step['op']}"
            run.step(step)
    except UnsupportedFeatureError as refusal:
        return Outcome(case, Status.REFUSED, where, str(refusal))
    except _Mismatch as mismatch:
        return Outcome(case, Status.FAILED, where, str(mismatch), mismatch.expected, mismatch.actual)
    except Exception as error:  # noqa: BLE001  the next case runs after any error of the engine
        return Outcome(case, Status.FAILED, where, f"{type(error).__name__}: {error}")
    return Outcome(case, Status.PASSED)


def _judge_creation(case: Case) -> str:
    return "create_error" if any(step["op"] == "create_error" for step in case.body["steps"]) else "create"


def _expect_error(what: str, action: Any) -> None:
    """Pass if the action raises an error of lakelsm; UnsupportedFeatureError is raised to the caller."""
    try:
        action()
    except UnsupportedFeatureError:
        raise
    except LakelsmError:
        return
    raise _Mismatch(f"{what} should have failed, and succeeded")


class _Run:
    """The state between the steps of one case."""

    def __init__(self, case: Case, table: EngineTable) -> None:
        self._table = table
        self._fields: dict[str, DataField] = {
            field.name: field for field in case_fields(case.body["columns"])
        }
        self._types: list[DataType] = [field.type for field in self._fields.values()]
        self._how = Comparison(bool(case.body.get("array_unordered")), case.body.get("binary_compare"))

    def step(self, step: Mapping[str, Any]) -> None:
        """Run one step. Raises _Mismatch if its result differs from that of the case."""
        match step["op"]:
            case "write":
                self._write(step)
            case "write_error":
                _expect_error("the write", lambda: self._write(step))
            case "compact":
                self._table.compact(bool(step["full"]))
            case "read":
                self._read(step)
            case "changelog":
                rows = self._table.changelog()
                self._judge(step, rows, [_KIND, *self._types])
            case unknown:
                raise _Mismatch(f"the runner knows no step {unknown!r}")

    def _write(self, step: Mapping[str, Any]) -> None:
        rows = [
            KindedRow(
                row["kind"],
                tuple(from_notation(v, t) for v, t in zip(row["values"], self._types, strict=True)),
            )
            for row in step["rows"]
        ]
        self._table.write(rows, step.get("options") or {})

    def _read(self, step: Mapping[str, Any]) -> None:
        columns = step.get("select")
        types = self._types if columns is None else [self._fields[name].type for name in columns]
        self._judge(step, self._table.read(step.get("where"), columns), types)

    def _judge(
        self, step: Mapping[str, Any], rows: Sequence[tuple[Any, ...]], types: Sequence[DataType]
    ) -> None:
        if step.get("disputed"):
            return
        wanted = [
            tuple(from_notation(v, t) for v, t in zip(row, types, strict=True)) for row in step["expect"]
        ]
        widths = {len(row) for row in rows} - {len(types)}
        if widths:
            raise _Mismatch(
                f"rows have {widths} columns instead of {len(types)}", show(step["expect"]), show(rows)
            )
        expected = comparable_rows(wanted, types, self._how)
        actual = comparable_rows(rows, types, self._how)
        same = expected == actual if step.get("ordered") else Counter(expected) == Counter(actual)
        if not same:
            if not step.get("ordered"):
                expected, actual = sorted(expected, key=repr), sorted(actual, key=repr)
            raise _Mismatch("the rows differ", show(expected), show(actual))
