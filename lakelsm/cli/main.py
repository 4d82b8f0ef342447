"""The ``lakelsm`` command: finds the verb and runs it. A new verb is its own file and one line in `VERBS`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Sequence

from lakelsm.cli.compact import COMPACT
from lakelsm.cli.query_service import QUERY_SERVICE
from lakelsm.cli.verb import Verb, parser_options, run_alone, run_parsed
from lakelsm.engine import stop_session
from lakelsm.version import VERSION

VERBS: tuple[Verb, ...] = (COMPACT, QUERY_SERVICE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``lakelsm <verb> …`` and return its exit status; the arguments are those of the process by default.

    Raises SystemExit for ``--help``, ``--version`` and a wrong command line, as argparse does.
    """
    parser = ArgumentParser(
        prog="lakelsm",
        description="Work on LSM primary-key tables in Apache Paimon's format.",
        epilog="lakelsm VERB --help shows a verb's arguments and exit statuses.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS:
        verb.set_up(verbs.add_parser(verb.name, help=verb.summary, **parser_options(verb)))
    return run_parsed(parser.parse_args(argv))


def console() -> int:
    """The console entry point ``lakelsm``."""
    return _ending_the_session(main)


def job(verb: Verb, program: str) -> int:
    """A verb as the program of a ``spark-submit``."""
    return _ending_the_session(lambda: run_alone(verb, program))


def _ending_the_session(run: Callable[[], int]) -> int:
    """Run and end the Spark session that the process had."""
    try:
        return run()
    finally:
        stop_session()
