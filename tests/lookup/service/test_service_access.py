"""Who may ask a server: a token, TLS, and nobody from elsewhere without a token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError, LookupServiceError
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.service.service_access import ServerAccess, is_loopback, token_of
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


def test_a_client_with_the_token_is_let_in_and_no_other(
    table: LocalTable, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    right, wrong = file_of(tmp_path, "s3cret-of-a-service\n"), file_of(tmp_path, "s3cret-of-another")
    with service(table.store, 2, ServerAccess.of_files(right, None, None)) as made:
        assert opened(table, token_file=right).find_one((1,)) == [("one",)]
        for options in ({"token_file": wrong}, {}):
            with pytest.raises(LookupServiceError, match=r"does not let this client in.*token-file") as refused:
                opened(table, **options)
            assert str(made[0].address) in str(refused.value)
            assert "s3cret" not in str(refused.value)
    refusals = [record for record in caplog.records if record.name == "lakelsm.lookup.service.open_calls"]
    assert all("its query service refused a call" in record.message for record in refusals) and refusals
    assert "s3cret" not in caplog.text


def test_tls_is_asked_for_with_certificates_that_vouch_for_the_server(table: LocalTable, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    with service(table.store, 1, ServerAccess.of_files(None, certificate, key)):
        with pytest.raises(LookupServiceError, match="fails"):
            opened(table, timeout=2000)
        assert opened(table, tls_roots=certificate).find_one((1,)) == [("one",)]
        (tmp_path / "other").mkdir()
        with pytest.raises(LookupServiceError, match="fails"):
            opened(table, tls_roots=make_certificate(tmp_path / "other")[0], timeout=2000)


def test_without_a_token_no_other_machine_may_ask(table: LocalTable) -> None:
    for host in ("0.0.0.0", "::", "worker-1", "10.0.0.1"):
        with pytest.raises(InvalidInputError, match=r"give a token file"):
            started(table.store, host=host)


def test_loopback_addresses_are_known() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example", "")))


def test_a_host_that_is_not_of_this_machine_is_refused_by_name(table: LocalTable, tmp_path: Path) -> None:
    access = ServerAccess.of_files(file_of(tmp_path, "token"), None, None)
    with pytest.raises(InvalidInputError, match=r"No server can be started at 192\.0\.2\.1"):
        started(table.store, access=access, host="192.0.2.1")


@pytest.mark.parametrize("text", ["", "\n", "two words", "two\nlines", "ünïcode", "x" * 5000, "nul\0"])
def test_a_file_that_is_no_token_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInputError, match="token"):
        token_of(file_of(tmp_path, text))


def test_files_that_cannot_be_read_are_named(table: LocalTable, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"token file .*nowhere cannot be read"):
        token_of(str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInputError, match="certificate file"):
        ServerAccess.of_files(None, str(tmp_path), str(tmp_path))
    with pytest.raises(InvalidInputError, match="TLS needs a certificate and its key"):
        ServerAccess.of_files(None, str(tmp_path), None)
    with service(table.store), pytest.raises(InvalidInputError, match=r"certificates file .*nowhere"):
        opened(table, tls_roots=str(tmp_path / "nowhere"))


def test_certificates_that_are_none_start_no_server(table: LocalTable, tmp_path: Path) -> None:
    nonsense = file_of(tmp_path, "no certificate")
    with pytest.raises(InvalidInputError, match="certificate and key files that go together"):
        started(table.store, access=ServerAccess.of_files(None, nonsense, nonsense))


def test_a_token_is_in_no_text_of_what_holds_it() -> None:
    assert "s3cret" not in repr(ServerAccess(token="s3cret", certificate=b"c", private_key=b"s3cret"))
