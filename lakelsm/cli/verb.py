"""Verbs of the command line: their arguments, the call on a table, and the report of its outcome."""

from __future__ import annotations

import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyarrow import ArrowException

from lakelsm.catalog import Catalog
from lakelsm.cli.arguments import (
    Tables,
    add_report,
    add_table,
    check_table,
    for_each_table,
    open_catalog,
    open_table,
)
from lakelsm.cli.command_parser import CommandParser
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.flags import in_flags
from lakelsm.cli.logs import logs_on_stderr, verbosity, without_credentials
from lakelsm.cli.report import (
    Report,
    failure_report,
    joined_report,
    outcome_report,
    print_failure,
    print_report,
    printable,
)
from lakelsm.engine import spark_errors
from lakelsm.environment import SYSTEM
from lakelsm.errors import LakelsmError
from lakelsm.table import Table

#: The end of ``--help`` of a verb that has no details.
EXIT_STATUSES = """\
exit status:
  0  done, or nothing to do. The JSON has the status: done, nothing, planned (dry run), or deadline
     (stopped by --deadline: run it again for the rest)
  1  failed; one line on standard error has the reason and the remedy (--verbose adds the traceback)
  2  wrong command line
  3  nothing to do (only with --distinct-exit-status)
  4  conflict with another commit, or no answer from the storage: run it again
  5  a check found errors, or a file of the table is missing or damaged
  130  interrupted by Ctrl-C
"""


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb that runs on opened tables. ``add_arguments`` adds its arguments, ``details`` end its ``--help``.

    ``tables`` are the tables that it accepts, one at a time. ``check`` exits for arguments that exclude each other.
    """

    name: str
    summary: str
    details: str = EXIT_STATUSES
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Table, Namespace], Report]
    tables: Tables = Tables.SEVERAL
    check: Callable[[ArgumentParser, Namespace], None] = lambda parser, arguments: None

    def set_up(self, parser: CommandParser) -> None:
        """Add the arguments of the verb to its parser, and make both defaults of the parsed arguments."""
        self.add_arguments(parser)
        add_table(parser, self.tables, by_path=True)
        add_report(parser)
        parser.set_defaults(verb=self, parser=parser)

    def report(self, arguments: Namespace) -> Report:
        """Run the verb on the table that the arguments name."""
        return self.run(open_table(arguments), arguments)


@dataclass(frozen=True, kw_only=True)
class CatalogVerb:
    """A verb that runs on a catalog, because its table may not exist or cannot be opened.

    ``run`` gets the name of the table in ``arguments.table``, unless ``tables`` is `Tables.NONE`.
    """

    name: str
    summary: str
    details: str = EXIT_STATUSES
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Catalog, Namespace], Report]
    tables: Tables = Tables.SEVERAL
    check: Callable[[ArgumentParser, Namespace], None] = lambda parser, arguments: None

    def set_up(self, parser: CommandParser) -> None:
        """Add the arguments of the verb to its parser, and make both defaults of the parsed arguments."""
        self.add_arguments(parser)
        add_table(parser, self.tables, by_path=False)
        add_report(parser)
        parser.set_defaults(verb=self, parser=parser)

    def report(self, arguments: Namespace) -> Report:
        """Run the verb on the catalog that the arguments name."""
        return self.run(open_catalog(arguments), arguments)


@dataclass(frozen=True, kw_only=True)
class VerbGroup:
    """A group of verbs, such as ``lakelsm tag create``."""

    name: str
    summary: str
    verbs: tuple[Verb, ...]
    details: str = "The default verb is list. VERB --help shows the arguments and exit statuses of a verb."

    def set_up(self, parser: CommandParser) -> None:
        """Add the verbs of the group to its parser. The default verb is 'list'."""
        add_verbs(parser, self.verbs)
        parser.default_verb = "list"


def add_verbs(parser: CommandParser, verbs: Sequence[Verb | CatalogVerb | VerbGroup]) -> None:
    """Make a parser accept one of some verbs."""
    below = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in verbs:
        verb.set_up(
            below.add_parser(verb.name, help=verb.summary, description=verb.summary, epilog=verb.details)
        )


def run_alone(verb: Verb | CatalogVerb, program: str, argv: Sequence[str] | None = None) -> int:
    """Run a verb as a program, and return its exit status. The default of ``argv`` is the command line of the process.

    Raises SystemExit for ``--help`` and for a wrong command line, as argparse does.
    """
    parser = CommandParser(prog=program, description=verb.summary, epilog=verb.details)
    verb.set_up(parser)
    return run_parsed(parser.parse_args(argv))


def run_parsed(arguments: Namespace) -> int:
    """Run a verb on each of its tables, print reports and failures, and return the exit status.

    If a table fails, the verb still runs on the others.
    """
    check_table(arguments.parser, arguments)
    arguments.verb.check(arguments.parser, arguments)
    with logs_on_stderr(arguments):
        return _run_on_all(arguments)


def _run_on_all(arguments: Namespace) -> int:
    started = SYSTEM.monotonic()
    try:
        tables = for_each_table(arguments)
    except failures() as error:
        return _print_reports([failure(error, arguments)], arguments)
    reports: list[Report] = []
    for each in tables:
        reports.append(_run_on_one(each, SYSTEM.monotonic() - started if reports else 0.0))
        if len(tables) > 1 and arguments.report == "text" and not reports[-1].raised:
            print(printable(reports[-1].text), flush=True)
    return _print_reports(reports, arguments)


def _run_on_one(arguments: Namespace, passed: float) -> Report:
    """Run the verb on one table, within the rest of the deadline; ``passed`` is in seconds."""
    verb: Verb | CatalogVerb = arguments.verb
    if getattr(arguments, "deadline", None) is not None:
        if passed > arguments.deadline:
            text = f"{arguments.table}: not started before the deadline; run it again"
            return outcome_report(text, {"table": arguments.table}, changed=False, complete=False)
        arguments.deadline -= passed
    try:
        return verb.report(arguments)
    except failures() as error:
        return failure(error, arguments)


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that are failures of the work. Others are bugs, and end with a traceback."""
    return (LakelsmError, ArrowException, OSError, MemoryError, *spark_errors())


def failure(error: Exception, arguments: Namespace, where: str = "") -> Report:
    """Print an error on standard error, after the text ``where``, and return its report."""
    if verbosity(arguments):
        shown = without_credentials(arguments)
        print(shown("".join(traceback.format_exception(error))), file=sys.stderr, end="", flush=True)
    subject = arguments.path or arguments.table or arguments.database or arguments.warehouse
    report = failure_report(error, subject)
    return failed(replace(report, text=f"{where}{report.text}"), arguments)


def failed(found: Report, arguments: Namespace) -> Report:
    """Print the failure on standard error in one line, with flags for Python arguments, and return its report."""
    text = without_credentials(arguments)(in_flags(found.text, arguments.parser))
    report = replace(found, text=text, values={**found.values, "error": text})
    print_failure(report, arguments.parser.prog)
    return report


def _print_reports(reports: Sequence[Report], arguments: Namespace) -> ExitStatus:
    report = reports[0] if len(reports) == 1 else joined_report(reports)
    status = report.status
    if status is ExitStatus.NOTHING_TO_DO and not arguments.distinct_exit_status:
        status = ExitStatus.DONE  # Schedulers treat any other number as a failure.
    if arguments.report == "json" or (len(reports) == 1 and not report.raised):
        print_report(report, status, arguments.report)
    return status
