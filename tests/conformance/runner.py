"""Runs cases of any kind and collects their outcomes."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lakelsm.errors import UnsupportedFeatureError
from tests.conformance import planning
from tests.conformance.cases import Case, CaseKind
from tests.conformance.outcomes import Outcome, Status
from tests.conformance.table_case import Engine, run_table_case
from tests.conformance.values import show

Verdict = tuple[Any, Any]  # expected, actual

_PLANNERS: dict[CaseKind, Callable[[dict[str, Any]], Verdict]] = {
    CaseKind.UNIVERSAL: planning.run_universal,
    CaseKind.INTERVAL: planning.run_interval,
    CaseKind.COMPACT_TASK: planning.run_compact_task,
}


def run_cases(cases: Sequence[Case], engine: Callable[[], Engine]) -> Iterator[Outcome]:
    """Return the outcomes in the order of the cases. `engine` is called once, when a table case needs it.

    Cases that upstream disputes as a whole are left out.
    """
    made: Engine | None = None
    for case in cases:
        if case.body.get("disputed"):
            continue
        if case.kind is CaseKind.TABLE:
            made = made or engine()
            yield run_table_case(case, made)
        else:
            yield run_planning_case(case, _PLANNERS[case.kind])


def run_planning_case(case: Case, planner: Callable[[dict[str, Any]], Verdict]) -> Outcome:
    """Run a case of the pure planner. It passes if the planner's answer equals the case's."""
    try:
        expected, actual = planner(case.body)
    except UnsupportedFeatureError as refusal:
        return Outcome(case, Status.REFUSED, message=str(refusal))
    except Exception as error:  # noqa: BLE001  the next case runs after any error of the planner
        return Outcome(case, Status.FAILED, message=f"{type(error).__name__}: {error}")
    if expected == actual:
        return Outcome(case, Status.PASSED)
    return Outcome(case, Status.FAILED, "", "the plans differ", show(expected), show(actual))


@contextlib.contextmanager
def local_engine() -> Iterator[Callable[[], Engine]]:
    """Yield a factory of the engine without a JVM; its files are deleted at the end."""
    from tests.conformance.local_engine import LocalEngine

    with tempfile.TemporaryDirectory(prefix="lakelsm-conformance-") as folder:
        yield lambda: LocalEngine(Path(folder) / "warehouse")


@contextlib.contextmanager
def spark_engine() -> Iterator[Callable[[], Engine]]:
    """Yield a factory of the Spark engine; its session and files are removed at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="lakelsm-conformance-") as folder,
        contextlib.ExitStack() as at_end,
    ):

        def make() -> Engine:
            from tests.conformance.spark_engine import SparkEngine
            from tests.spark_session import build_session

            session = build_session("lakelsm-conformance", Path(folder))
            at_end.callback(session.stop)
            return SparkEngine(session, Path(folder) / "warehouse")

        yield make
