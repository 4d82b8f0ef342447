"""``lakelsm query-service``: servers that answer lookups of a table until a signal ends them."""

from __future__ import annotations

import signal
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from lakelsm.arguments import checked_seconds
from lakelsm.cli.arguments import Tables, checked, positive
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report
from lakelsm.cli.verb import Verb
from lakelsm.engine import ENGINES, has_session, opened_storage, spark_session
from lakelsm.format.paths import MAIN_BRANCH, table_path
from lakelsm.format.table_name import TableName
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DETAILS = """\
The servers run until SIGTERM or SIGINT (Ctrl-C). Their addresses are in the table's file
service/service-primary-key-lookup-flight. A later service for the same table takes over, and this one
ends. Events are reported on standard error.

exit status:
  0  ended by a signal, or another service took over
  1  failed; one line on standard error has the reason and the remedy
  2  wrong command line
  4  a server ended unexpectedly or did not start: run it again (the JSON has status "failed" and
     error_kind "retry")

examples:
  lakelsm query-service --warehouse file:///tmp/wh --table shop.customers --servers 2

  spark-submit "$(python -c 'import lakelsm.__main__ as job; print(job.__file__)')" query-service \\
      --warehouse file:///tmp/wh --table shop.customers --servers 4 --token-file token.txt
"""


def _add_arguments(parser: ArgumentParser) -> None:
    servers = parser.add_argument_group("servers")
    servers.add_argument(
        "--servers",
        metavar="N",
        type=checked(positive),
        default=1,
        help="number of servers that share the buckets: local processes, or tasks of one Spark stage (default: 1)",
    )
    servers.add_argument(
        "--host",
        help="address to listen on (default: 127.0.0.1; on Spark with a token, the host of each task)",
    )
    servers.add_argument(
        "--refresh",
        metavar="TIME",
        type=checked(checked_seconds),
        help="interval of checks for a newer snapshot: seconds, or a duration such as '1 min' (default: the table's "
        "lookup.continuous.discovery-interval)",
    )
    servers.add_argument(
        "--engine",
        choices=ENGINES,
        help="engine: spark, or local for this machine (default: spark under spark-submit, else local)",
    )
    access = parser.add_argument_group("access (default: every user of this machine)")
    access.add_argument("--token-file", metavar="FILE", help="file with the token that clients must send")
    access.add_argument("--tls-cert", metavar="FILE", help="certificate of the servers (PEM); clients then use TLS")
    access.add_argument("--tls-key", metavar="FILE", help="private key of the certificate (PEM)")


def _run(table: Table, arguments: Namespace) -> Report:
    # Only this verb loads Arrow Flight.
    from lakelsm.lookup.service.query_service import QueryService
    from lakelsm.lookup.service.servers import ServerSetup
    from lakelsm.lookup.service.service_access import ServerAccess

    on_spark = arguments.engine == "spark" or (arguments.engine is None and has_session(None))
    spark = spark_session(None, "pass engine='local'") if on_spark else None
    setup = ServerSetup(
        store=_store(table, arguments),
        servers=arguments.servers,
        host=arguments.host,
        access=ServerAccess.of_files(arguments.token_file, arguments.tls_cert, arguments.tls_key),
        refresh=arguments.refresh,
    )
    service = QueryService(setup, spark)
    with _stop_on_signals(spark) as stop:
        stopped = service.run(stop, _print_event)
    text = f"{table.name}: the query service has ended" + ("" if stopped else ": another one has taken over")
    return Report(ExitStatus.DONE, text, {"table": table.name, "status": "stopped" if stopped else "replaced"})


def _store(table: Table, arguments: Namespace) -> TableStore:
    location, main, branch = arguments.path, None, arguments.branch or MAIN_BRANCH
    if location is None:
        name = TableName.parse(table.name)
        location, main, branch = table_path(arguments.warehouse, name.database, name.table), name.main_name, name.branch
    file_io, root = opened_storage(location, None, dict(arguments.storage_option))
    return TableStore.within(file_io, root, main).on_branch(branch)


def _print_event(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _stop_on_signals(spark: SparkSession | None) -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set, in this process or in the JVM of its Spark session."""
    stop = threading.Event()
    with ExitStack() as handlers:
        for number in (signal.SIGTERM, signal.SIGINT):
            handlers.callback(signal.signal, number, signal.signal(number, lambda *_: stop.set()))
        if spark is not None:
            from lakelsm.spark.jvm_signals import jvm_signals

            handlers.enter_context(jvm_signals(spark, ("TERM", "INT"), stop.set))
        yield stop


QUERY_SERVICE = Verb(
    name="query-service",
    summary="Serve lookups of a table by primary key to other processes.",
    details=_DETAILS,
    add_arguments=_add_arguments,
    run=_run,
    tables=Tables.ONE,
)
