"""Leases: files beside that of the addresses, for as long as which the servers of one service on a cluster run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from lakelsm.json_document import parse_texts
from lakelsm.lookup.service.service_addresses import ServerAddress
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO

_MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class ServerLease:
    """The lease at ``path``. It pickles."""

    file_io: FileIO
    path: str

    @staticmethod
    def of(store: TableStore, uuid: str) -> ServerLease:
        """A service's lease, not yet written."""
        return ServerLease(store.file_io, store.paths.lookup_lease(uuid))

    @property
    def lasts(self) -> bool:
        """Whether servers go on."""
        return self.file_io.exists(self.path)

    def write(self, addresses: Sequence[str]) -> None:
        """Let servers run. ``addresses``: those that have started."""
        self.file_io.write(self.path, json.dumps(list(addresses)).encode(), durable=False)

    def addresses(self) -> tuple[ServerAddress, ...] | None:
        """The servers that have started, in the order of their numbers; None where none have."""
        try:
            texts = parse_texts(self.file_io.read(self.path, _MAX_BYTES), self.path)
        except FileNotFoundError:
            return None
        found = [ServerAddress.parse(text) for text in texts]
        return tuple(address for address in found if address is not None) or None

    def end(self) -> None:
        """Let servers end."""
        self.file_io.delete(self.path)


def leases(store: TableStore) -> list[ServerLease]:
    """The leases of a table: of services that run, and of those that were killed."""
    folder, _, prefix = store.paths.lookup_lease("").rpartition("/")
    names = store.file_io.list(folder)
    return [ServerLease(store.file_io, f"{folder}/{name}") for name in sorted(names) if name.startswith(prefix)]
