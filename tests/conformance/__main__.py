"""The command line of the runner; `make conformance` calls it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.cases import CaseFileError, load_cases
from tests.conformance.outcomes import Outcome, Status, closing_line, summary_by_topic
from tests.conformance.runner import local_engine, run_cases, spark_engine

_ENGINES = {"local": local_engine, "spark": spark_engine}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the requested cases and print the report. Returns 0 if none failed, 1 if some did, 2 if none exist."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance",
        description="Run conformance cases on lakelsm and report them by topic.",
        epilog="exit status: 0 if no case failed, 1 if some did, 2 if the cases cannot be read",
    )
    parser.add_argument("--cases", type=Path, nargs="+", required=True, metavar="FILE", help="files of JSON lines")
    parser.add_argument("--topic", help="only the cases of this topic")
    parser.add_argument("--id", help="only this case")
    parser.add_argument("--engine", choices=sorted(_ENGINES), default="spark", help="engine of the run (default: spark)")
    parser.add_argument("--verbose", action="store_true", help="also print refused cases, with the reason")
    options = parser.parse_args(arguments)
    try:
        cases = load_cases(options.cases, options.topic, options.id)
    except (CaseFileError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2

    started = time.monotonic()
    outcomes: list[Outcome] = []
    with _ENGINES[options.engine]() as engine:
        for outcome in run_cases(cases, engine):
            outcomes.append(outcome)
            if outcome.status is Status.FAILED or (options.verbose and outcome.status is Status.REFUSED):
                print(outcome.text(), flush=True)
    left_out = len(cases) - len(outcomes)
    print()
    print(summary_by_topic(outcomes))
    print()
    disputed = f", {left_out} disputed" if left_out else ""
    print(f"{len(outcomes)} cases in {time.monotonic() - started:.1f} s{disputed}")
    print(closing_line(outcomes))
    return 1 if any(outcome.status is Status.FAILED for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
