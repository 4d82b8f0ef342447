"""A verb of the command line: its arguments, what it does with a table, and how its outcome is told."""

from __future__ import annotations

import traceback
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyarrow import ArrowException

from lakelsm.cli.arguments import add_report, add_table, check_table, open_table
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report, print_failure, print_report
from lakelsm.engine import spark_errors
from lakelsm.errors import LakelsmError
from lakelsm.table import Table


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One verb. ``add_arguments`` adds its own arguments, ``run`` does the work; `details` end its ``--help``."""

    name: str
    summary: str
    details: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Table, Namespace], Report]

    def set_up(self, parser: ArgumentParser) -> None:
        """Make the parser this verb's: its arguments, and the verb and the parser beside them."""
        add_table(parser)
        self.add_arguments(parser)
        add_report(parser)
        parser.set_defaults(verb=self, parser=parser)


def parser_options(verb: Verb) -> dict[str, Any]:
    """What argparse is told of a verb's parser, alone or below the command."""
    return {
        "description": verb.summary,
        "epilog": verb.details,
        "formatter_class": RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }


def run_alone(verb: Verb, program: str, argv: Sequence[str] | None = None) -> int:
    """Run a verb as a program of its own and return its exit status; the arguments are the process's by default.

    Raises SystemExit for ``--help`` and for a wrong command line, as argparse does.
    """
    parser = ArgumentParser(prog=program, **parser_options(verb))
    verb.set_up(parser)
    return run_parsed(parser.parse_args(argv))


def run_parsed(arguments: Namespace) -> int:
    """Run the verb of parsed arguments: print its report, or its failure, and return the exit status."""
    verb: Verb = arguments.verb
    parser: ArgumentParser = arguments.parser
    check_table(parser, arguments)
    try:
        report = verb.run(open_table(arguments), arguments)
    except (LakelsmError, ArrowException, OSError, *spark_errors()) as error:
        if arguments.verbose:
            traceback.print_exc()
        return print_failure(error, parser.prog, arguments.path or arguments.table, arguments.report)
    status = report.status
    if status is ExitStatus.NOTHING_TO_DO and not arguments.distinct_exit_status:
        status = ExitStatus.DONE  # Schedulers take any other number for a failure.
    print_report(report, status, arguments.report)
    return status
