"""The locations of the tables of a campaign: directories, or a bucket of an S3 server in its own process."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lakelsm import Catalog, Table
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage.open_storage import open_storage
from tests.campaign.processes import CONTEXT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUCKET = "campaign"


@dataclass(frozen=True)
class Warehouse:
    """A warehouse, and the `storage_options` that reach it."""

    warehouse: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        return "://" not in self.warehouse

    def create(self, name: str, columns: str, **more: Any) -> TableLocation:
        """Create a table."""
        Catalog(self.warehouse, storage_options=self.options or None).create_table(f"db.{name}", columns, **more)
        return TableLocation(f"{self.warehouse}/db.db/{name}", self.options)


@dataclass(frozen=True)
class TableLocation:
    """The location of a table, in the form that is sent to processes."""

    uri: str
    options: dict[str, str]

    def opened(self, spark: SparkSession | None = None) -> Table:
        return Table.for_path(self.uri, spark, storage_options=self.options or None)

    def store(self) -> TableStore:
        return TableStore.within(*open_storage(self.uri, self.options))

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri


@contextmanager
def open_warehouse(where: str, directory: Path) -> Iterator[Warehouse]:
    """Yield a warehouse: 'local' below a directory, 's3' in a bucket of a new server, or at a URI of the environment."""
    if where == "local":
        yield Warehouse(str(directory))
    elif where == "s3":
        with _server() as port:
            options = {
                "s3.endpoint": f"http://127.0.0.1:{port}",
                "s3.access-key": "test-access",
                "s3.secret-key": "test-secret",
                "s3.path.style.access": "true",
            }
            yield Warehouse(f"s3://{BUCKET}/{uuid4()}", options)
    else:
        yield Warehouse(f"{where.rstrip('/')}/{uuid4()}")


@contextmanager
def _server() -> Iterator[int]:
    here, there = CONTEXT.Pipe()
    process: BaseProcess = CONTEXT.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        port: int = here.recv()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("PUT", f"/{BUCKET}")
        assert connection.getresponse().status == 200
        connection.close()
        yield port
    finally:
        process.kill()
        process.join()


def _serve(pipe: Connection) -> None:
    from tests.storage.object_server import ObjectServer

    server = ObjectServer()
    server.start()
    pipe.send(server.port)
    while not pipe.poll(5):  # Until it is killed or its parent has ended. Requests are not counted.
        server.requests.clear()
