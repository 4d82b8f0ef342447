"""The command ``lakelsm``: finds the verb and runs it. A new verb is one module and one entry of `VERBS`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeAlias

from lakelsm.cli.all_steps import ALL
from lakelsm.cli.alter import ALTER
from lakelsm.cli.analyze import ANALYZE
from lakelsm.cli.branch import BRANCH
from lakelsm.cli.check import CHECK
from lakelsm.cli.command_parser import CommandParser
from lakelsm.cli.compact import COMPACT
from lakelsm.cli.consumers import CONSUMERS
from lakelsm.cli.contents import FILES, HEAD, SNAPSHOTS
from lakelsm.cli.create import CREATE
from lakelsm.cli.describe import DESCRIBE
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.expire import EXPIRE
from lakelsm.cli.explain import EXPLAIN
from lakelsm.cli.logs import add_log_arguments
from lakelsm.cli.orphans import ORPHANS
from lakelsm.cli.partitions import PARTITIONS
from lakelsm.cli.query_service import QUERY_SERVICE
from lakelsm.cli.rollback import ROLLBACK
from lakelsm.cli.sql import SQL
from lakelsm.cli.status import HISTORY, STATUS
from lakelsm.cli.tables import DROP, TABLES
from lakelsm.cli.tag import TAG
from lakelsm.cli.verb import CatalogVerb, Verb, VerbGroup, add_verbs, run_alone, run_parsed
from lakelsm.engine import stop_session
from lakelsm.version import VERSION

_AnyVerb: TypeAlias = Verb | CatalogVerb | VerbGroup

#: Verbs that maintain tables.
UPKEEP: tuple[_AnyVerb, ...] = (
    *(ALL, COMPACT, EXPIRE, TAG, BRANCH, ROLLBACK, ORPHANS, PARTITIONS, CONSUMERS, ANALYZE),
    *(CHECK, STATUS, HISTORY),
)
#: Verbs that show and create tables.
CATALOG: tuple[_AnyVerb, ...] = (SQL, TABLES, DESCRIBE, HEAD, EXPLAIN, SNAPSHOTS, FILES, CREATE, ALTER, DROP)
VERBS: tuple[_AnyVerb, ...] = (*CATALOG, *UPKEEP, QUERY_SERVICE)


def main(argv: Sequence[str] | None = None, program: str = "lakelsm") -> int:
    """Run ``lakelsm VERB …`` and return its exit status. The default of ``argv`` is the command line of the process.

    Another ``program`` than 'lakelsm' has only the verbs of `UPKEEP`. Raises SystemExit for ``--help``, ``--version``
    and a wrong command line, as argparse does.
    """
    return run_parsed(command_parser(program).parse_args(argv))


def command_parser(program: str) -> CommandParser:
    """Return the parser of the command, or of a program with the verbs of `UPKEEP` only."""
    parser = CommandParser(
        prog=program,
        description="Manage LSM primary-key tables in Apache Paimon's format.",
        epilog=f"{program} VERB --help shows the arguments and exit statuses of a verb.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    add_log_arguments(parser)
    add_verbs(parser, VERBS if program == "lakelsm" else UPKEEP)
    return parser


def console() -> int:
    """Run the command ``lakelsm`` as a console entry point."""
    return _then_stop_session(main)


def job(verb: Verb | CatalogVerb, program: str) -> int:
    """Run one verb as the program of a ``spark-submit``."""
    return _then_stop_session(lambda: run_alone(verb, program))


def upkeep_job(program: str) -> int:
    """Run the verbs of `UPKEEP` as the program of a ``spark-submit``."""
    return _then_stop_session(lambda: main(program=program))


def _then_stop_session(run: Callable[[], int]) -> int:
    """Run a program, then stop the Spark session of the process. Ctrl-C ends it without a traceback."""
    try:
        return run()
    except KeyboardInterrupt as interruption:
        notes = getattr(interruption, "__notes__", ())
        sys.stderr.write("\n".join(["lakelsm: interrupted.", *notes]) + "\n")
        return ExitStatus.INTERRUPTED
    finally:
        stop_session()
