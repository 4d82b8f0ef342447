"""``lakelsm tables`` and ``lakelsm drop``: list and drop tables."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lakelsm.catalog import Catalog
from lakelsm.cli.arguments import Tables, add_dry_run
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report, outcome_report
from lakelsm.cli.verb import CatalogVerb
from lakelsm.errors import TableNotFoundError


def _list(catalog: Catalog, arguments: Namespace) -> Report:
    names = catalog.list_tables(arguments.database)
    values = {"warehouse": arguments.warehouse, "status": "done", "tables": names}
    return Report(ExitStatus.DONE, "\n".join(names) or "no tables", values)


def _add_dropped(parser: ArgumentParser) -> None:
    parser.add_argument("--if-exists", action="store_true", help="succeed if the table does not exist")
    add_dry_run(parser)


def _drop(catalog: Catalog, arguments: Namespace) -> Report:
    name = arguments.table
    try:
        if not arguments.dry_run:
            catalog.drop_table(name)
        elif not catalog.table_exists(name):
            catalog.table(name)
    except TableNotFoundError:
        if not arguments.if_exists:
            raise
        return outcome_report(f"{name}: does not exist", {"table": name}, changed=False)
    text = f"{name}: {'would be ' if arguments.dry_run else ''}dropped with all its files"
    values = {"table": name, "dry_run": arguments.dry_run}
    return outcome_report(text, values, changed=True, dry_run=arguments.dry_run)


TABLES = CatalogVerb(
    name="tables",
    summary="List the tables of a warehouse or of one of its databases.",
    add_arguments=lambda parser: None,
    run=_list,
    tables=Tables.NONE,
)

DROP = CatalogVerb(
    name="drop",
    summary="Drop tables and delete all their files. This cannot be undone.",
    add_arguments=_add_dropped,
    run=_drop,
    tables=Tables.BY_FORCE,
)
