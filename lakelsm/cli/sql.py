"""``lakelsm sql``: run SQL statements on the tables of a warehouse."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lakelsm.catalog import Catalog
from lakelsm.cli.arguments import Tables
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report, joined_report, printable
from lakelsm.cli.row_output import FORMATS, check_output, format_of, print_rows, write_file
from lakelsm.cli.sql_prompt import run_prompt
from lakelsm.cli.sql_results import NO_STATEMENTS, ROW_STATEMENTS, rows_of, statement_report
from lakelsm.cli.verb import EXIT_STATUSES, CatalogVerb, failed, failure, failures
from lakelsm.engine import ENGINES
from lakelsm.errors import InvalidInputError, error_context
from lakelsm.sql.syntax.parser import parse_statement
from lakelsm.sql.syntax.script import StatementText, split_script
from lakelsm.text_table import amount

_DETAILS = f"""\
Without STATEMENT and --file, standard input is the script; a terminal gets a prompt. In the prompt, a
semicolon ends a statement, Tab completes names, and Ctrl-D or quit ends it; its exit status is 0.
A script stops at the first statement that fails; the error has its number and line. The statements
before it remain done.

formats of rows:
  table    aligned columns; values are cut to 60 characters unless there is one column
  csv      a header, then rows; NULL is empty, and an empty text is ""
  json     one object in each line
  parquet  a file, with --output
In csv and json, times are ISO 8601, decimals in full, bytes hexadecimal digits; nested values are JSON.

examples:
  lakelsm sql --warehouse /tmp/wh "SELECT * FROM shop.orders LIMIT 5"
  lakelsm sql --warehouse /tmp/wh --file nightly.sql --report json
  lakelsm sql --warehouse /tmp/wh "SELECT * FROM shop.orders" --output orders.parquet

{EXIT_STATUSES}"""
#: Maximum number of characters of a statement in a message.
_MAX_SHOWN = 60
#: The exit statuses after which a script continues. A compaction returns a failure as its result.
_SUCCESSES = (ExitStatus.DONE, ExitStatus.NOTHING_TO_DO)


def _add_arguments(parser: ArgumentParser) -> None:
    text = parser.add_mutually_exclusive_group()
    text.add_argument("statement", metavar="STATEMENT", nargs="?", help="statements, separated by semicolons")
    text.add_argument("--file", metavar="FILE", help="file with a script, in UTF-8")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="form of rows (default: csv, json or parquet by the ending of the file of --output, else table)",
    )
    parser.add_argument(
        "--output", metavar="FILE", help="write the rows of the only query to a file, which is replaced if it exists"
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="local",
        help="engine: local for this process alone, or spark (default: local)",
    )
    parser.add_argument(
        "--history",
        metavar="FILE",
        help="file with the history of the prompt (default: lakelsm/sql_history in $XDG_STATE_HOME or ~/.local/state)",
    )


def _check(parser: ArgumentParser, arguments: Namespace) -> None:
    if arguments.format == "parquet" and arguments.output is None:
        parser.error("--format parquet needs --output")
    if not _is_prompt(arguments):
        if arguments.history is not None:
            parser.error("--history is for the prompt: leave out STATEMENT and --file, and use a terminal")
        return
    for flag, is_given in (("--output", arguments.output is not None), ("--report json", arguments.report == "json")):
        if is_given:
            parser.error(f"{flag} needs STATEMENT, --file or a script on standard input")


def _is_prompt(arguments: Namespace) -> bool:
    has_text = arguments.statement is not None or arguments.file is not None
    return not has_text and sys.stdin is not None and sys.stdin.isatty()


def _run(catalog: Catalog, arguments: Namespace) -> Report:
    session = _Session(catalog, arguments)
    if _is_prompt(arguments):
        run_prompt(catalog, session.run_or_report, arguments.history)
        return Report(ExitStatus.DONE, "", {})
    return session.run_script(_script(arguments))


def _script(arguments: Namespace) -> Sequence[StatementText]:
    """Return the statements of the argument, of the file, or of standard input."""
    if arguments.statement is not None:
        statements = list(split_script(arguments.statement))
        if not statements:
            raise InvalidInputError("STATEMENT: expected a SQL statement, got an empty text.")
        return statements
    try:
        data = _standard_input() if arguments.file is None else Path(arguments.file).read_bytes()
        return list(split_script(data.decode("utf-8-sig")))
    except (OSError, UnicodeDecodeError) as error:
        source = "standard input" if arguments.file is None else f"file: {arguments.file!r}"
        raise InvalidInputError(f"{source} cannot be read as text: {error}.") from error


def _standard_input() -> bytes:
    return b"" if sys.stdin is None else sys.stdin.buffer.read()


@dataclass(frozen=True)
class _Session:
    """Runs statements on a catalog, and prints what they return."""

    catalog: Catalog
    arguments: Namespace

    def run_script(self, statements: Sequence[StatementText]) -> Report:
        """Run statements up to the first one that fails. Their texts are printed when they end."""
        if not statements:
            return NO_STATEMENTS
        is_single = self.arguments.statement is not None and len(statements) == 1
        reports: list[Report] = []
        where = ""
        try:
            if self.arguments.output is not None:
                self._check_output(statements)
            for number, statement in enumerate(statements, 1):
                where = "" if is_single else f"{_place(number, statement)}: "
                report = self.run(statement.text)
                values = {"statement": number, "line": statement.line, **report.values}
                reports.append(report if is_single else replace(report, values=values))
                if report.status not in _SUCCESSES:
                    text = f"{where}{report.values.get('error') or report.values['status']}"
                    failed(replace(report, text=text), self.arguments)
                    break
        except BrokenPipeError:
            _discard_output()
            closed = InvalidInputError("Standard output was closed before the last row.")
            found = failure(closed, self.arguments, where)
        except failures() as error:
            found = failure(error, self.arguments, where)
        else:
            return replace(reports[0] if is_single else joined_report(reports, "statements"), text="")
        done = joined_report(reports, "statements").values if reports else {"statements": []}
        return found if is_single else replace(found, values={**found.values, **done})

    def run_or_report(self, text: str) -> None:
        """Run a statement of the prompt. An error is printed."""
        try:
            self.run(text)
        except failures() as error:
            failure(error, self.arguments)

    def run(self, text: str) -> Report:
        """Run a statement, print its rows or its report, and return the report with an empty text."""
        arguments = self.arguments
        found = self.catalog.sql(text, arguments.engine)
        rows = rows_of(found)
        form = format_of(arguments.format, arguments.output)
        if rows is None:
            report = statement_report(found)
            self._print(report, as_json=form == "json")
            return replace(report, text="")
        values: dict[str, object] = {"status": "done", "columns": list(rows.schema.names)}
        if arguments.output is None:
            return Report(ExitStatus.DONE, "", {**values, "rows": print_rows(rows, form)})
        count = write_file(rows, form, arguments.output)
        values = {**values, "rows": count, "output": arguments.output}
        report = Report(ExitStatus.DONE, f"{amount(count, 'row')} written to {arguments.output}", values)
        self._print(report, as_json=False)
        return replace(report, text="")

    def _print(self, report: Report, *, as_json: bool) -> None:
        if self.arguments.report != "json":
            print(json.dumps(report.values) if as_json else printable(report.text), flush=True)

    def _check_output(self, statements: Sequence[StatementText]) -> None:
        """Check --output before the first statement runs: the file, and that one statement returns rows."""
        check_output(self.arguments.output)
        with_rows = 0
        for number, each in enumerate(statements, 1):
            with error_context(_place(number, each)):
                with_rows += isinstance(parse_statement(each.text), ROW_STATEMENTS)
        if with_rows != 1:
            raise InvalidInputError(f"output: expected one statement that returns rows, found {with_rows}.")


def _place(number: int, statement: StatementText) -> str:
    """Return the number, line and first line of a statement, for a message."""
    line = statement.first_line
    shown = line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…"
    return f"Statement {number}, line {statement.line} ({shown})"


def _discard_output() -> None:
    """Discard what is still written to the closed standard output, also at the end of the process."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


SQL = CatalogVerb(
    name="sql",
    summary="Run SQL statements, or start a prompt for them.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    run=_run,
    check=_check,
    tables=Tables.WAREHOUSE,
)
