"""Leases: what they say of servers, and which ones a table has."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.lookup.service.server_lease import ServerLease, leases
from lakelsm.lookup.service.service_addresses import ServerAddress, publish
from tests.compact.local_table import LocalTable


def test_a_lease_lasts_until_it_ends_and_has_the_servers_that_started(tmp_path: Path) -> None:
    lease = ServerLease.of(LocalTable(tmp_path / "t").store, "u")
    assert (lease.lasts, lease.addresses()) == (False, None)
    lease.write(())
    assert (lease.lasts, lease.addresses()) == (True, None)
    lease.write(["127.0.0.1:1", "[::1]:2"])
    assert lease.addresses() == (ServerAddress("127.0.0.1", 1), ServerAddress("::1", 2))
    lease.end()
    lease.end()
    assert (lease.lasts, lease.addresses()) == (False, None)


def test_the_leases_of_a_table_are_those_beside_its_addresses(tmp_path: Path) -> None:
    store = LocalTable(tmp_path / "t").store
    assert leases(store) == []
    publish(store, [ServerAddress("127.0.0.1", 1)])
    made = [ServerLease.of(store, uuid) for uuid in ("a", "b")]
    for lease in made:
        lease.write(())
    assert leases(store) == made


def test_a_damaged_lease_is_told(tmp_path: Path) -> None:
    lease = ServerLease.of(LocalTable(tmp_path / "t").store, "u")
    lease.write(())
    Path(lease.path).write_text("{")
    with pytest.raises(CorruptTableError, match="lakelsm-servers-u"):
        lease.addresses()
