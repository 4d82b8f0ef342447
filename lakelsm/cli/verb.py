"""A verb of the command line: its arguments, what it does with a table, and the report of its outcome."""

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

#: The end of the ``--help`` of verbs without their own.
EXIT_STATUSES = """\
exit status:
  0  done, or nothing to do (the JSON's status tells: done, nothing, planned for a dry run, or deadline
     where --deadline stopped it: run it again for the rest)
  1  failed; one line on standard error says why and what to do (--verbose adds the traceback)
  2  the command line is wrong
  3  nothing to do, with --distinct-exit-status only
  4  others came first, or the storage did not answer: run it again
  5  a check found errors, or a file of the table is missing or damaged
"""


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One verb. ``add_arguments`` adds its own arguments, ``run`` does the work; `details` end its ``--help``.

    ``tables`` are those that it takes, one after another; ``check`` ends the program for arguments that do not go
    together.
    """

    name: str
    summary: str
    details: str = EXIT_STATUSES
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Table, Namespace], Report]
    tables: Tables = Tables.SEVERAL
    check: Callable[[ArgumentParser, Namespace], None] = lambda parser, arguments: None

    def set_up(self, parser: CommandParser) -> None:
        """Make the parser this verb's: its arguments, and the verb and the parser beside them."""
        self.add_arguments(parser)
        add_table(parser, self.tables, by_path=True)
        add_report(parser)
        parser.set_defaults(verb=self, parser=parser)

    def report(self, arguments: Namespace) -> Report:
        """Run on the table that the arguments name."""
        return self.run(open_table(arguments), arguments)


@dataclass(frozen=True, kw_only=True)
class CatalogVerb:
    """A verb that works on the catalog, as the table that it names need not exist or be one that can be opened.

    ``run`` finds the table's name in ``arguments.table``, unless ``tables`` is `Tables.NONE`.
    """

    name: str
    summary: str
    details: str = EXIT_STATUSES
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Catalog, Namespace], Report]
    tables: Tables = Tables.SEVERAL
    check: Callable[[ArgumentParser, Namespace], None] = lambda parser, arguments: None

    def set_up(self, parser: CommandParser) -> None:
        """Make the parser this verb's."""
        self.add_arguments(parser)
        add_table(parser, self.tables, by_path=False)
        add_report(parser)
        parser.set_defaults(verb=self, parser=parser)

    def report(self, arguments: Namespace) -> Report:
        """Run on the catalog that the arguments name."""
        return self.run(open_catalog(arguments), arguments)


@dataclass(frozen=True, kw_only=True)
class VerbGroup:
    """A verb with verbs below it: ``lakelsm tag create``."""

    name: str
    summary: str
    verbs: tuple[Verb, ...]
    details: str = "Without VERB it lists. VERB --help shows a verb's arguments and exit statuses."

    def set_up(self, parser: CommandParser) -> None:
        """Make the parser this group's; 'list' is the verb where none is named."""
        add_verbs(parser, self.verbs)
        parser.default_verb = "list"


def add_verbs(parser: CommandParser, verbs: Sequence[Verb | CatalogVerb | VerbGroup]) -> None:
    """Let a parser take one of some verbs."""
    below = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in verbs:
        verb.set_up(
            below.add_parser(verb.name, help=verb.summary, description=verb.summary, epilog=verb.details)
        )


def run_alone(verb: Verb | CatalogVerb, program: str, argv: Sequence[str] | None = None) -> int:
    """Run a verb as a program and return its exit status; the arguments are the process's by default.

    Raises SystemExit for ``--help`` and for a wrong command line, as argparse does.
    """
    parser = CommandParser(prog=program, description=verb.summary, epilog=verb.details)
    verb.set_up(parser)
    return run_parsed(parser.parse_args(argv))


def run_parsed(arguments: Namespace) -> int:
    """Run the verb of parsed arguments on each table: print the reports and failures, and return the exit status.

    A table that fails does not keep the others from their turn.
    """
    check_table(arguments.parser, arguments)
    arguments.verb.check(arguments.parser, arguments)
    with logs_on_stderr(arguments):
        return _run_on_all(arguments)


def _run_on_all(arguments: Namespace) -> int:
    started = SYSTEM.monotonic()
    try:
        tables = for_each_table(arguments)
    except _failures() as error:
        return _tell([_failed(error, arguments)], arguments)
    reports: list[Report] = []
    for each in tables:
        reports.append(_run_on_one(each, SYSTEM.monotonic() - started if reports else 0.0))
        if len(tables) > 1 and arguments.report == "text" and not reports[-1].raised:
            print(printable(reports[-1].text), flush=True)
    return _tell(reports, arguments)


def _run_on_one(arguments: Namespace, passed: float) -> Report:
    """Run on one table, within what is left of the deadline."""
    verb: Verb | CatalogVerb = arguments.verb
    if getattr(arguments, "deadline", None) is not None:
        if passed > arguments.deadline:
            text = f"{arguments.table}: not begun, the deadline had passed; run it again"
            return outcome_report(text, {"table": arguments.table}, changed=False, complete=False)
        arguments.deadline -= passed
    try:
        return verb.report(arguments)
    except _failures() as error:
        return _failed(error, arguments)


def _failures() -> tuple[type[Exception], ...]:
    """What is a failure of the work; all else is a fault of the program."""
    return (LakelsmError, ArrowException, OSError, MemoryError, *spark_errors())


def _failed(error: Exception, arguments: Namespace) -> Report:
    if verbosity(arguments):
        shown = without_credentials(arguments)
        print(shown("".join(traceback.format_exception(error))), file=sys.stderr, end="", flush=True)
    subject = arguments.path or arguments.table or arguments.database or arguments.warehouse
    return failed(failure_report(error, subject), arguments)


def failed(found: Report, arguments: Namespace) -> Report:
    """The report of a failure with the flags of the command line, printed as one line on standard error."""
    text = without_credentials(arguments)(in_flags(found.text, arguments.parser))
    report = replace(found, text=text, values={**found.values, "error": text})
    print_failure(report, arguments.parser.prog)
    return report


def _tell(reports: Sequence[Report], arguments: Namespace) -> ExitStatus:
    report = reports[0] if len(reports) == 1 else joined_report(reports)
    status = report.status
    if status is ExitStatus.NOTHING_TO_DO and not arguments.distinct_exit_status:
        status = ExitStatus.DONE  # Schedulers take any other number for a failure.
    if arguments.report == "json" or (len(reports) == 1 and not report.raised):
        print_report(report, status, arguments.report)
    return status
