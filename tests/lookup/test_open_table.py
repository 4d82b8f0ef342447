"""Which cache answers a lookup."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog, Table
from lakelsm.lookup.lookup_definition import LookupDefinition
from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.lookup.open_table import chosen_cache, opened_cache
from lakelsm.lookup.partial_cache import PartialCache
from lakelsm.lookup.service.service_addresses import ServerAddress, publish


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Catalog(str(tmp_path)).create_table(
        "db.t", "k INT, v STRING", primary_key=["k"], options={"bucket": 1}
    )


def spec(table: Table, cache: str = "auto", key: str = "k") -> LookupSpec:
    definition = LookupDefinition(key=(key,), options={"lookup.cache": cache})
    return definition.of_table(table._store()).spec(None)


@pytest.mark.parametrize(
    ("cache", "key", "service", "expected"),
    [
        ("auto", "k", False, "partial"),
        ("auto", "k", True, "remote"),
        ("auto", "v", False, "full"),
        ("auto", "v", True, "full"),
        ("full", "k", True, "full"),
        ("memory", "k", True, "full"),
        ("partial", "k", True, "partial"),
    ],
)
def test_auto_is_paimons_choice_and_others_are_what_they_say(
    cache: str, key: str, service: bool, expected: str, table: Table
) -> None:
    if service:
        publish(table._store(), [ServerAddress("127.0.0.1", 9)])
    assert chosen_cache(spec(table, cache, key)) == expected


def test_a_cache_has_a_directory_of_its_own(table: Table, tmp_path: Path) -> None:
    private, shared = opened_cache(spec(table), None), opened_cache(spec(table), tmp_path / "shared")
    assert (private.kind, type(private.table)) == ("partial", PartialCache)
    assert shared.directory.path.parent == tmp_path / "shared"
    private.close()
    shared.close()
    assert (private.directory.path.exists(), shared.directory.path.exists()) == (False, True)
