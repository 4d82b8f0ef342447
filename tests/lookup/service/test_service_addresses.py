"""The file of a service's addresses: as Paimon's ServiceManager keeps it, replaced as a whole, refused where damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.lookup import chosen_cache
from lakelsm.lookup.service.service_addresses import (
    ServerAddress,
    ServerLease,
    leases,
    publish,
    published_addresses,
    withdraw,
)
from tests.compact.local_table import LocalTable

ONE, OTHER = ServerAddress("127.0.0.1", 4711), ServerAddress("::1", 65_535)


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    return LocalTable(tmp_path / "t")


def service_file(table: LocalTable) -> Path:
    return table.root / "service" / "service-primary-key-lookup-flight"


def test_addresses_are_written_as_paimons_service_manager_writes_them(table: LocalTable) -> None:
    publish(table.store, [ONE, OTHER, ServerAddress("worker-1.example", 1)])
    assert service_file(table).read_text() == '[ "127.0.0.1:4711", "[::1]:65535", "worker-1.example:1" ]'
    assert published_addresses(table.store) == (ONE, OTHER, ServerAddress("worker-1.example", 1))


def test_a_table_without_the_file_has_no_service(table: LocalTable) -> None:
    assert published_addresses(table.store) is None


def test_a_newer_service_replaces_an_older_one_which_then_leaves_the_file_alone(table: LocalTable) -> None:
    publish(table.store, [ONE])
    publish(table.store, [OTHER])
    assert not withdraw(table.store, [ONE])
    assert published_addresses(table.store) == (OTHER,)
    assert withdraw(table.store, [OTHER])
    assert published_addresses(table.store) is None
    assert not withdraw(table.store, [OTHER])


def test_the_addresses_of_flinks_query_service_are_neither_read_nor_touched(table: LocalTable) -> None:
    flinks = table.root / "service" / "service-primary-key-lookup"
    flinks.parent.mkdir()
    flinks.write_text('[ "10.0.0.1:4711" ]')
    before = flinks.stat()
    assert published_addresses(table.store) is None
    assert chosen_cache(LookupSpec(table.store, ("id",), ("id",))) == "partial"
    publish(table.store, [ONE])
    assert published_addresses(table.store) == (ONE,)
    assert chosen_cache(LookupSpec(table.store, ("id",), ("id",))) == "remote"
    assert withdraw(table.store, [ONE])
    assert not withdraw(table.store, [ServerAddress("10.0.0.1", 4711)])
    assert flinks.read_text() == '[ "10.0.0.1:4711" ]'
    assert flinks.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[1]",
        '["host"]',
        '["host:0"]',
        '["host:65536"]',
        '["host:+1"]',
        '["host:\u0661"]',
        '[":80"]',
        '["user@host:80"]',
        '["host/path:80"]',
        '["host:80/path"]',
        '["ho\\nst:80"]',
        '["::1:80"]',
        '["[::1%eth0]:80"]',
        '["[host]:80"]',
        '["' + "h" * 300 + ':80"]',
        '["a:1", null]',
        "[" * 100_000,
        '["a:1"' + ', "a:1"' * 10_000 + "]",
    ],
)
def test_a_file_that_is_no_list_of_addresses_is_refused_by_name(table: LocalTable, text: str) -> None:
    service_file(table).parent.mkdir()
    service_file(table).write_text(text)
    with pytest.raises(CorruptTableError, match=r"service-primary-key-lookup-flight.*start the query service again"):
        published_addresses(table.store)
    assert not withdraw(table.store, [ONE])
    assert service_file(table).exists()


def test_a_link_out_of_the_table_is_not_followed(table: LocalTable, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('[ "a:1" ]')
    service_file(table).parent.mkdir()
    service_file(table).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptTableError, match="outside"):
        published_addresses(table.store)


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
