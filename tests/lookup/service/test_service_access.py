"""Access to servers: a token, TLS, and no access from other machines without a token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError, InvalidInputError, LookupServiceError
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.lookup import chosen_cache
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.service.service_access import (
    ServerAccess,
    ServerAddress,
    ServerLease,
    is_loopback,
    leases,
    publish,
    published_addresses,
    read_token,
    withdraw,
)
from tests.compact.local_table import LocalTable
from tests.lookup.service.certificates import make_certificate
from tests.lookup.service.whole_table import service, started


def opened(table: LocalTable, **options: str | int) -> RemoteCache:
    store = table.store
    chosen = replace(store.options, **{f"lakelsm_lookup_service_{name}": value for name, value in options.items()})
    return RemoteCache.open(LookupSpec(replace(store, options=chosen), ("id",), ("v",)))


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    table = LocalTable(tmp_path / "t")
    table.write((1, "one"))
    return table


def file_of(directory: Path, text: str) -> str:
    path = directory / f"token-{len(list(directory.iterdir()))}"
    path.write_text(text)
    return str(path)


def test_only_a_client_with_the_token_is_admitted(
    table: LocalTable, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    right, wrong = file_of(tmp_path, "s3cret-of-a-service\n"), file_of(tmp_path, "s3cret-of-another")
    with service(table.store, 2, ServerAccess.of_files(right, None, None)) as made:
        assert opened(table, token_file=right).find_key((1,)) == [("one",)]
        for options in ({"token_file": wrong}, {}):
            with pytest.raises(LookupServiceError, match=r"refuses this client.*token-file") as refused:
                opened(table, **options)
            assert str(made[0].address) in str(refused.value)
            assert "s3cret" not in str(refused.value)
    refusals = [record for record in caplog.records if record.name == "lakelsm.lookup.service.open_calls"]
    assert all("its query service refused a call" in record.message for record in refusals) and refusals
    assert "s3cret" not in caplog.text


def test_a_client_with_roots_accepts_only_a_server_that_they_certify(table: LocalTable, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    with service(table.store, 1, ServerAccess.of_files(None, certificate, key)):
        with pytest.raises(LookupServiceError, match="failed"):
            opened(table, timeout=2000)
        assert opened(table, tls_roots=certificate).find_key((1,)) == [("one",)]
        (tmp_path / "other").mkdir()
        with pytest.raises(LookupServiceError, match="failed"):
            opened(table, tls_roots=make_certificate(tmp_path / "other")[0], timeout=2000)


def test_without_a_token_other_machines_have_no_access(table: LocalTable) -> None:
    for host in ("0.0.0.0", "::", "worker-1", "10.0.0.1"):
        with pytest.raises(InvalidInputError, match=r"Give a token file"):
            started(table.store, host=host)


def test_loopback_addresses_are_known() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example", "")))


def test_a_host_that_is_not_of_this_machine_is_refused_by_name(table: LocalTable, tmp_path: Path) -> None:
    access = ServerAccess.of_files(file_of(tmp_path, "token"), None, None)
    with pytest.raises(InvalidInputError, match=r"no server can listen at '192\.0\.2\.1'"):
        started(table.store, access=access, host="192.0.2.1")


@pytest.mark.parametrize("text", ["", "\n", "two words", "two\nlines", "ünïcode", "x" * 5000, "nul\0"])
def test_a_file_without_a_token_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInputError, match="token"):
        read_token(file_of(tmp_path, text))


def test_files_that_cannot_be_read_are_named(table: LocalTable, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"token file .*nowhere cannot be read"):
        read_token(str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInputError, match="certificate file"):
        ServerAccess.of_files(None, str(tmp_path), str(tmp_path))
    with pytest.raises(InvalidInputError, match="TLS needs a certificate and its key"):
        ServerAccess.of_files(None, str(tmp_path), None)
    with service(table.store), pytest.raises(InvalidInputError, match=r"certificates file .*nowhere"):
        opened(table, tls_roots=str(tmp_path / "nowhere"))


def test_invalid_certificates_start_no_server(table: LocalTable, tmp_path: Path) -> None:
    nonsense = file_of(tmp_path, "no certificate")
    with pytest.raises(InvalidInputError, match="certificate and a key that belong together"):
        started(table.store, access=ServerAccess.of_files(None, nonsense, nonsense))


def test_no_repr_contains_the_token() -> None:
    assert "s3cret" not in repr(ServerAccess(token="s3cret", certificate=b"c", private_key=b"s3cret"))


ONE, OTHER = ServerAddress("127.0.0.1", 4711), ServerAddress("::1", 65_535)


@pytest.fixture
def empty(tmp_path: Path) -> LocalTable:
    return LocalTable(tmp_path / "t")


def service_file(empty: LocalTable) -> Path:
    return empty.root / "service" / "service-primary-key-lookup-flight"


def test_addresses_are_written_as_paimons_service_manager_writes_them(empty: LocalTable) -> None:
    publish(empty.store, [ONE, OTHER, ServerAddress("worker-1.example", 1)])
    assert service_file(empty).read_text() == '[ "127.0.0.1:4711", "[::1]:65535", "worker-1.example:1" ]'
    assert published_addresses(empty.store) == (ONE, OTHER, ServerAddress("worker-1.example", 1))


def test_a_table_without_the_file_has_no_service(empty: LocalTable) -> None:
    assert published_addresses(empty.store) is None


def test_a_newer_service_replaces_an_older_one_which_then_leaves_the_file_alone(empty: LocalTable) -> None:
    publish(empty.store, [ONE])
    publish(empty.store, [OTHER])
    assert not withdraw(empty.store, [ONE])
    assert published_addresses(empty.store) == (OTHER,)
    assert withdraw(empty.store, [OTHER])
    assert published_addresses(empty.store) is None
    assert not withdraw(empty.store, [OTHER])


def test_the_addresses_of_flinks_query_service_are_neither_read_nor_changed(empty: LocalTable) -> None:
    flinks = empty.root / "service" / "service-primary-key-lookup"
    flinks.parent.mkdir()
    flinks.write_text('[ "10.0.0.1:4711" ]')
    before = flinks.stat()
    assert published_addresses(empty.store) is None
    assert chosen_cache(LookupSpec(empty.store, ("id",), ("id",))) == "partial"
    publish(empty.store, [ONE])
    assert published_addresses(empty.store) == (ONE,)
    assert chosen_cache(LookupSpec(empty.store, ("id",), ("id",))) == "remote"
    assert withdraw(empty.store, [ONE])
    assert not withdraw(empty.store, [ServerAddress("10.0.0.1", 4711)])
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
def test_a_file_that_is_not_a_list_of_addresses_is_refused_by_name(empty: LocalTable, text: str) -> None:
    service_file(empty).parent.mkdir()
    service_file(empty).write_text(text)
    with pytest.raises(CorruptTableError, match=r"service-primary-key-lookup-flight.*[Ss]tart the query service again"):
        published_addresses(empty.store)
    assert not withdraw(empty.store, [ONE])
    assert service_file(empty).exists()


def test_a_link_out_of_the_table_is_not_followed(empty: LocalTable, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('[ "a:1" ]')
    service_file(empty).parent.mkdir()
    service_file(empty).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptTableError, match="outside"):
        published_addresses(empty.store)


def test_a_lease_exists_until_its_end_and_has_the_started_servers(tmp_path: Path) -> None:
    lease = ServerLease.of(LocalTable(tmp_path / "t").store, "u")
    assert (lease.exists, lease.addresses()) == (False, None)
    lease.write(())
    assert (lease.exists, lease.addresses()) == (True, None)
    lease.write(["127.0.0.1:1", "[::1]:2"])
    assert lease.addresses() == (ServerAddress("127.0.0.1", 1), ServerAddress("::1", 2))
    lease.end()
    lease.end()
    assert (lease.exists, lease.addresses()) == (False, None)


def test_the_leases_of_a_table_are_in_the_directory_of_its_addresses(tmp_path: Path) -> None:
    store = LocalTable(tmp_path / "t").store
    assert leases(store) == []
    publish(store, [ServerAddress("127.0.0.1", 1)])
    made = [ServerLease.of(store, uuid) for uuid in ("a", "b")]
    for lease in made:
        lease.write(())
    assert leases(store) == made


def test_a_damaged_lease_is_an_error(tmp_path: Path) -> None:
    lease = ServerLease.of(LocalTable(tmp_path / "t").store, "u")
    lease.write(())
    Path(lease.path).write_text("{")
    with pytest.raises(CorruptTableError, match="lakelsm-servers-u"):
        lease.addresses()
