"""What servers have in common reaches their processes."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.lookup.service.service_access import ServerAccess
from tests.compact.local_table import LocalTable
from tests.lookup.service.test_local_servers import setup_of


def test_a_setup_that_travelled_makes_servers_of_loopback_unless_it_says_otherwise(tmp_path: Path) -> None:
    setup = pickle.loads(pickle.dumps(setup_of(LocalTable(tmp_path / "t"), 2)))
    servers = [setup.server(0), setup.server(1, "localhost"), replace(setup, host="localhost").server(0, "elsewhere")]
    assert [server.address.host for server in servers] == ["127.0.0.1", "localhost", "localhost"]
    assert len({server.address.port for server in servers}) == 3
    for server in servers:
        assert server.stop()


def test_a_host_that_others_reach_needs_a_token(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="give a token file"):
        setup_of(LocalTable(tmp_path / "t"), host="10.0.0.1")


@pytest.mark.parametrize("host", ["", " ", "a b", "a\x01", "127.0.0.1:80", "[::1]", "http://localhost", "h" * 300])
def test_what_is_no_host_could_not_be_published_and_is_refused(host: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"host is .*; it must be the name or IP address of a machine"):
        replace(setup_of(LocalTable(tmp_path / "t")), host=host, access=ServerAccess(token="t"))


def test_more_servers_than_a_file_of_addresses_may_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="servers is 10001; it must be 10000 at most"):
        replace(setup_of(LocalTable(tmp_path / "t")), servers=10_001)
