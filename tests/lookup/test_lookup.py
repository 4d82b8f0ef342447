"""Lookups as users call them, on a cache that reads the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.environment import Environment
from lakelsm.errors import InvalidInputError
from lakelsm.lookup.fresh_cache import FreshCache
from lakelsm.lookup.lookup import Lookup
from lakelsm.lookup.lookup_definition import LookupDefinition, RefreshPolicy
from tests.lookup.scanned_cache import Opened

ROWS = {
    "id": [1, 2, 3],
    "region": ["eu", "us", "eu"],
    "name": ["ann", None, "cid"],
    "tags": [["x"], [], None],
}
SCHEMA = pa.schema(
    [("id", pa.int32()), ("region", pa.string()), ("name", pa.string()), ("tags", pa.list_(pa.string()))]
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Catalog(str(tmp_path)).create_table(
        "shop.customers",
        "id INT, region STRING, name STRING, tags ARRAY<STRING>",
        primary_key=["id"],
        options={"bucket": 1},
    )
    made.write(pa.table(ROWS, schema=SCHEMA))
    return made


def opened(table: Table, environment: Environment | None = None, **request: Any) -> Lookup:
    definition = LookupDefinition(**{"options": {}, **request})
    policy = RefreshPolicy(interval=None)
    return Lookup(FreshCache(table._store(), definition, policy, Opened(), environment=environment or Environment()))


@pytest.fixture
def lookup(table: Table) -> Iterator[Lookup]:
    with opened(table, columns=("name", "region")) as found:
        yield found


def test_get_returns_the_row_of_a_key_or_none(lookup: Lookup) -> None:
    assert lookup.get(1) == {"name": "ann", "region": "eu"}
    assert lookup.get(id=2) == lookup.get(ID=2) == {"name": None, "region": "us"}
    assert lookup.get(4) is None
    assert lookup.get(2**40) is None
    assert lookup.get_all(3) == [{"name": "cid", "region": "eu"}]
    assert lookup.get_all(4) == []


def test_a_column_of_the_key_may_have_any_name(tmp_path: Path) -> None:
    made = Catalog(str(tmp_path)).create_table("db.t", "self INT, v INT", primary_key=["self"], options={"bucket": 1})
    made.write(pa.table({"self": pa.array([1], pa.int32()), "v": pa.array([2], pa.int32())}))
    with opened(made) as lookup:
        assert [lookup.get(self=1)] == lookup.get_all(self=1) == [{"self": 1, "v": 2}]


def test_by_default_all_columns_are_returned_and_chosen_ones_have_the_users_names(table: Table) -> None:
    with opened(table) as lookup:
        assert lookup.get(1) == {"id": 1, "region": "eu", "name": "ann", "tags": ["x"]}
    with opened(table, columns=("NAME",)) as lookup:
        assert lookup.get(1) == {"NAME": "ann"}
        assert lookup.get_many(pa.table({"Id": [1]})).to_pydict() == {"Id": [1], "NAME": ["ann"]}


def test_returned_rows_may_be_changed(table: Table) -> None:
    with opened(table) as lookup:
        row = lookup.get(1)
        assert row is not None
        row["tags"].append("y")
        row["name"] = "z"
        assert lookup.get(1) == {"id": 1, "region": "eu", "name": "ann", "tags": ["x"]}


def test_a_key_that_may_have_several_rows_needs_get_all(table: Table) -> None:
    with opened(table, key=("region",), columns=("id",)) as lookup:
        with pytest.raises(InvalidInputError, match=r"A key of \(region\) may have several rows: use get_all"):
            lookup.get("eu")
        assert lookup.get_all("eu") == [{"id": 1}, {"id": 3}]
        found = lookup.get_many(pa.table({"region": ["us", "xx", "eu"]}))
        assert found.to_pydict() == {"region": ["us", "xx", "eu", "eu"], "id": [2, None, 1, 3]}
        assert lookup.get_many(pa.table({"region": ["xx", "eu"]}), "inner").to_pydict() == {
            "region": ["eu", "eu"],
            "id": [1, 3],
        }


def test_get_many_returns_the_keys_unchanged_and_their_rows_in_order(lookup: Lookup) -> None:
    keys = pa.table({"id": [3, 9, None, 1, 3, 2**40]})
    found = lookup.get_many(keys)
    assert found.schema.types == [pa.int64(), pa.string(), pa.string()]
    assert found.to_pydict() == {
        "id": [3, 9, None, 1, 3, 2**40],
        "name": ["cid", None, None, "ann", "cid", None],
        "region": ["eu", None, None, "eu", "eu", None],
    }
    assert lookup.get_many(keys, how="inner").to_pydict() == {
        "id": [3, 1, 3],
        "name": ["cid", "ann", "cid"],
        "region": ["eu", "eu", "eu"],
    }
    assert lookup.get_many(pa.table({"id": [3, 1]}), how="inner")["name"].to_pylist() == ["cid", "ann"]
    assert lookup.get_many(pd.DataFrame({"ID": [2]})).column_names == ["ID", "name", "region"]
    assert lookup.get_many(pa.table({"id": pa.array([], pa.int64())})).num_rows == 0
    assert lookup.get_many(pa.table({"id": [7]}), how="inner").num_rows == 0


def test_columns_of_the_key_are_not_returned_twice(table: Table) -> None:
    with opened(table, columns=("id", "name")) as lookup:
        assert lookup.get_many(pa.table({"id": [1, 8]})).to_pydict() == {"id": [1, 8], "name": ["ann", None]}
        assert lookup.get(1) == {"id": 1, "name": "ann"}


def test_rows_that_a_condition_leaves_out_are_not_found(table: Table) -> None:
    with opened(table, columns=("name",), where="region = 'eu'") as lookup:
        assert (lookup.get(1), lookup.get(2)) == ({"name": "ann"}, None)


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda lookup: lookup.get(None), "key column 'id': expected a value of INT"),
        (lambda lookup: lookup.get("1"), "key column 'id': expected a value of INT"),
        (lambda lookup: lookup.get(), "column 'id' of the lookup's key (id) is missing"),
        (lambda lookup: lookup.get(1, 2), "key: expected 1 value (id), got 2"),
        (lambda lookup: lookup.get(name="ann"), "column 'name' is not in the lookup's key"),
        (lambda lookup: lookup.get_all(None), "key column 'id': expected"),
        (lambda lookup: lookup.get_many(pa.table({"name": ["ann"]})), "keys: column 'id' of the lookup's key"),
        (lambda lookup: lookup.get_many(pa.table({"id": ["1"]})), "Cast the keys to int32"),
        (lambda lookup: lookup.get_many(["1"]), "Cast the keys to int32"),
        (lambda lookup: lookup.get_many(5), "keys: expected rows in memory"),
        (lambda lookup: lookup.get_many(pa.table({}), how="outer"), "how: expected 'left' or 'inner'"),
        (lambda lookup: lookup.get_many(pa.table({"id": [1]}), None), "how: expected 'left' or 'inner'"),
    ],
)
def test_wrong_keys_are_refused_with_the_reason(lookup: Lookup, call: Any, fault: str) -> None:
    with pytest.raises(InvalidInputError) as reported:
        call(lookup)
    assert fault in str(reported.value)


def test_staleness_reports_which_snapshot_answers_and_how_old_it_is(table: Table) -> None:
    seconds = [5.0]
    store = table._store()
    first = store.snapshots.latest()
    assert first is not None
    environment = Environment(clock=lambda: first.time_millis + 90_000, monotonic=lambda: seconds[0])
    with opened(table, environment) as lookup:
        table.write(pa.table(ROWS, schema=SCHEMA).slice(0, 1))
        seconds[0] = 7.5
        found = lookup.staleness()
        assert (found.table, found.cache, found.snapshot_id, found.newest_snapshot_id) == ("shop.customers", "full", 1, 2)
        assert (found.snapshots_behind, found.age_seconds, found.seconds_since_look) == (1, 90.0, 2.5)
        assert found.committed_at == datetime.fromtimestamp(first.time_millis / 1000, timezone.utc)
        lookup.refresh()
        again = lookup.staleness()
        assert (again.snapshot_id, again.snapshots_behind, again.seconds_since_look) == (2, 0, 0.0)


def test_an_empty_table_has_no_rows_and_no_snapshot(tmp_path: Path) -> None:
    made = Catalog(str(tmp_path)).create_table("db.t", "k INT, v STRING", primary_key=["k"], options={"bucket": 1})
    with opened(made) as lookup:
        assert lookup.get(1) is None
        assert lookup.get_many(pa.table({"k": [1]})).to_pydict() == {"k": [1], "v": [None]}
        found = lookup.staleness()
        assert (found.snapshot_id, found.committed_at, found.age_seconds, found.snapshots_behind) == (None, None, None, 0)


def test_a_closed_lookup_raises(table: Table) -> None:
    lookup = opened(table)
    lookup.close()
    lookup.close()
    calls = (lambda: lookup.get(1), lambda: lookup.get_many(pa.table({"id": [1]})), lookup.refresh, lookup.staleness)
    for call in calls:
        with pytest.raises(InvalidInputError, match=r"Table shop.customers: the lookup is closed"):
            call()
    assert repr(lookup) == "Lookup(table='shop.customers', closed=True)"


def test_a_lookup_shows_its_state_in_one_line_and_as_a_table(table: Table) -> None:
    with opened(table) as lookup:
        assert repr(lookup) == "Lookup(table='shop.customers', cache='full', snapshot=1, rows=3)"
        shown = lookup._repr_html_()
    assert "<tr><th>cache</th><td>&#x27;full&#x27;</td></tr>" in shown and "<tr><th>rows</th><td>3</td></tr>" in shown
    with table.lookup(cache="full") as full, table.lookup(cache="partial") as partial:
        full_state = r"Lookup\(table='shop.customers', cache='full', snapshot=1, rows=3, bytes=\d{3,}\)"
        assert re.fullmatch(full_state, repr(full))
        assert repr(partial) == "Lookup(table='shop.customers', cache='partial', snapshot=1, bytes=0)"


def test_many_keys_may_be_a_list_of_values_tuples_or_dicts(table: Table) -> None:
    with opened(table, columns=("name",)) as lookup:
        for keys in ([3, 9, None], (3, 9, None), [(3,), (9,), (None,)], [{"ID": 3}, {"ID": 9}, {"ID": None}]):
            found = lookup.get_many(keys)
            assert found["name"].to_pylist() == ["cid", None, None] and found.column(0).to_pylist() == [3, 9, None]
            assert lookup.get_many(keys, how="inner")["name"].to_pylist() == ["cid"]
        assert lookup.get_many([]).num_rows == 0
    with opened(table, key=("region", "id"), columns=("name",)) as lookup:
        for keys in ([("eu", 1), ("us", 1)], [{"id": 1, "region": "eu"}, {"region": "us", "id": 1}]):
            assert lookup.get_many(keys).to_pydict() == {"region": ["eu", "us"], "id": [1, 1], "name": ["ann", None]}
