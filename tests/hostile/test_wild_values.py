"""Tables whose metadata has values that no writer writes: every operation ends with a typed error or none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import read_container, read_records, write_container
from tests.examples import examples
from tests.hostile.hostile_table import HostileTable
from tests.hostile.test_replaced_paths import record_manifest_sizes

Make = Callable[[], HostileTable]

#: JSON values of unexpected types, and extreme values of expected types.
WILD_JSON: list[Any] = [
    None,
    True,
    0,
    -1,
    1,
    2**31,
    -(2**31) - 1,
    2**62,
    2**63 - 1,
    -(2**63),
    2**64,
    0.5,
    1e300,
    float("nan"),
    float("inf"),
    10**400,
    "",
    "..",
    "a/b",
    "../../../outside/LATEST",
    "\0",
    "\ud800",
    "x" * 300,
    "9" * 5000,
    "-1",
    "NaN",
    "ARRAY<" * 5000,
    "ARRAY<" * 63 + "INT" + ">" * 63,
    "VECTOR<FLOAT, 3>",
    "INT NOT NULL",
    "TIMESTAMP(9)",
    [],
    {},
    [[]],
    ["id", "id"],
    {"a": 1},
    {"type": "ARRAY", "element": "INT"},
    [None],
    list(range(1000)),
]

#: Values of Avro's types.
WILD_NUMBERS = [0, -1, 1, 2, 3, 7, 127, 2**15, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63)]
WILD_TEXTS = ["", "..", "a/b", "\0", "x", "x" * 300, "HASH", "DELETION_VECTORS", "\x7f" * 5000]
WILD_BYTES = [b"", b"\0", b"\xff" * 12, b"\0\0\0\1" + b"\0" * 16, b"\0\0\0\1" + b"\xff" * 16, b"\x7f\xff\xff\xff" * 5]

#: Fields of 32 bits.
INTS = {
    *("_VERSION", "_KIND", "_BUCKET", "_TOTAL_BUCKETS", "_LEVEL", "_FILE_SOURCE"),
    *("_MIN_BUCKET", "_MAX_BUCKET", "_MIN_LEVEL", "_MAX_LEVEL", "f1", "f2"),
}

FILES = ["schema", "snapshot", "tag", "base list", "delta list", "manifest", "index manifest"]


def paths_in(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each value in a document."""
    items: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(document, dict):
        items = iter(document.items())
    elif isinstance(document, (list, tuple)):
        items = enumerate(document)  # type: ignore[assignment]
    for key, value in items:
        yield (*path, key)
        yield from paths_in(value, (*path, key))


def value_at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    value_at(document, path[:-1])[path[-1]] = value


def wild_json(path: Path, draw: st.DataObject) -> str:
    """Replace, remove or add one value of a JSON file; return what was done."""
    document = json.loads(path.read_bytes())
    where = draw.draw(st.sampled_from(sorted(paths_in(document), key=str)))
    if draw.draw(st.integers(0, 9)) == 0:
        del value_at(document, where[:-1])[where[-1]]
        text = json.dumps(document)
        done = f"no {where}"
    else:
        value = draw.draw(st.sampled_from(WILD_JSON))
        put(document, where, value)
        text = json.dumps(document)
        done = f"{where} = {str(value)[:20]!r}"
    path.write_text(text)
    return done


def wild_avro(path: Path, draw: st.DataObject) -> str:
    """Replace one value of an Avro file by another of its type; return what was done."""
    container = read_container(path.read_bytes(), path.name)
    records = read_records(container)
    if not records:
        return "nothing"
    where = draw.draw(st.sampled_from(sorted(paths_in(records), key=str)))
    old = value_at(records, where)
    value: Any = old
    if isinstance(old, bool) or old is None:
        value = None
    elif isinstance(old, int):
        value = draw.draw(st.sampled_from(WILD_NUMBERS))
        if where[-1] in INTS:
            value = max(-(2**31), min(2**31 - 1, value))
    elif isinstance(old, str):
        value = draw.draw(st.sampled_from(WILD_TEXTS))
    elif isinstance(old, bytes):
        flipped = st.integers(0, max(0, len(old) - 1)).map(lambda at: old[:at] + b"\xff" + old[at + 1 :])
        value = draw.draw(st.one_of(st.sampled_from(WILD_BYTES), flipped, st.binary(max_size=40)))
    elif isinstance(old, list):
        value = draw.draw(st.sampled_from([[], old * 2, old[:1] * 50_000]))
    elif isinstance(old, dict) and len(where) == 1:
        records.extend([dict(old)] * draw.draw(st.sampled_from([1, 500])))
    put(records, where, value)
    schema = fastavro.schema.parse_schema(dict(container.schema))
    path.write_bytes(write_container(schema, records, "zstd"))
    return f"{where} = {str(value)[:20]!r}"


@examples(15)
@given(draw=st.data())
def test_with_any_metadata_every_operation_ends_with_a_typed_error_or_none(
    make: Make, draw: st.DataObject
) -> None:
    table = make()
    kind = draw.draw(st.sampled_from(FILES))
    path = table.kinds[kind]
    change = wild_json if kind in ("schema", "snapshot", "tag") else wild_avro
    note(f"{kind}: {change(path, draw)}")
    if kind == "manifest":
        record_manifest_sizes(table.root)
    outcomes = table.judge()
    event(f"{kind}: {sum(error is not None for error in outcomes.values())} refused")


def refusals_of(table: HostileTable, change: Callable[[dict[str, Any]], object]) -> list[str]:
    """Change the first entry of a manifest; return the errors of reads and compactions."""
    path = table.kinds["manifest"]
    container = read_container(path.read_bytes(), path.name)
    records = read_records(container)
    change(records[0])
    path.write_bytes(write_container(fastavro.schema.parse_schema(dict(container.schema)), records, "zstd"))
    record_manifest_sizes(table.root)
    errors = table.refused("read", "compact", "count")
    assert all(isinstance(error, CorruptTableError) for error in errors)
    return [str(error) for error in errors]


@pytest.mark.parametrize(("field", "value"), [("_LEVEL", -1), ("_LEVEL", 2**31 - 1), ("_ROW_COUNT", -1)])
def test_a_number_that_no_writer_writes_is_damage_to_reads_and_compactions(make: Make, field: str, value: int) -> None:
    table = make()
    manifest = table.kinds["manifest"].name
    for refused in refusals_of(table, lambda entry: entry["_FILE"].update({field: value})):
        assert manifest in refused and f"{field} {value}" in refused


@pytest.mark.parametrize("at", range(4, 12))
def test_a_partition_whose_header_no_writer_writes_is_damage(make: Make, at: int) -> None:
    """Found by `make fuzz`: one of two readers took equal partitions with other bytes for different ones."""

    def change(entry: dict[str, Any]) -> None:
        entry["_PARTITION"] = entry["_PARTITION"][:at] + b"\xff" + entry["_PARTITION"][at + 1 :]

    assert refusals_of(make(), change)
