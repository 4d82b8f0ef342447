"""The page docs/format.md agrees with the code: its lists of keys, fields and values, and its examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.key_value_file import file_schema
from lakelsm.format.index.deletion_vector_file import encode_vectors
from lakelsm.format.index.file_index.index_builder import FileIndexBuilder
from lakelsm.format.manifest.avro_schemas import INDEX_MANIFEST_SCHEMA, MANIFEST_LIST_SCHEMA, MANIFEST_SCHEMA
from lakelsm.format.partition_path import escape_path_name
from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.bucket_hash import bucket_ids, key_hashes
from lakelsm.format.row.compacted_row import encode_compacted
from lakelsm.format.row.nested_bytes import nested_bytes
from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.lookup.partial.remote_lookup_file import ValueProcessor
from lakelsm.lookup.store.sort_block import BlockCompression
from lakelsm.options.file_index_options import BLOOM_FILTER, ColumnIndex
from lakelsm.options.option_enums import BucketFunction, ChangelogProducer, MergeEngine, ScanMode, SortOrder
from lakelsm.schema.option_rules import can_have_index
from lakelsm.schema.table_schema import create_schema
from lakelsm.types import parse_type, to_arrow
from lakelsm.types.data_types import ATOMIC_ROOTS

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")

_FIELD = re.compile(r"([A-Z]+(?:\([\d, ]+\))?) ('[^']*'|NULL|true|-?[\d.]+)")


def tables(section: str) -> Iterator[list[list[str]]]:
    """Yield the tables of a section: rows of cells, without headers."""
    text = re.search(rf"^### {re.escape(section)} .*?\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    if text is None:
        text = re.search(rf"^## {re.escape(section)}\. .*?\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert text is not None
    for table in re.findall(r"(?:^\|.*\n?)+", text[1], re.MULTILINE):
        lines = table.strip().split("\n")[2:]
        yield [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def rows(section: str) -> list[list[str]]:
    """Return the rows of all tables of a section."""
    return [row for table in tables(section) for row in table]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def fields(record: Mapping[str, Any]) -> list[str]:
    return [field["name"] for field in record["fields"]]


def parsed(cell: str) -> tuple[list[Any], list[Any]]:
    """Return the types and values of an example such as "INT 1, STRING 'a'"."""
    found = _FIELD.findall(cell)
    assert found
    return [parse_type(kind) for kind, _ in found], [value(text) for _, text in found]


def value(text: str) -> Any:
    if text.startswith("'"):
        return text.strip("'")
    return Decimal(text) if "." in text else json.loads(text.replace("NULL", "null"))


SNAPSHOT = Snapshot(
    id=7,
    schema_id=0,
    base_manifest_list="manifest-list-a-0",
    delta_manifest_list="manifest-list-a-1",
    commit_user="u",
    commit_identifier=1,
    commit_kind=CommitKind.APPEND,
    time_millis=1,
    total_record_count=2,
    delta_record_count=2,
    uuid="x",
    base_manifest_list_size=1,
    delta_manifest_list_size=1,
    changelog_manifest_list="manifest-list-a-2",
    changelog_manifest_list_size=1,
    index_manifest="index-manifest-a-0",
    writer_version="v",
    log_offsets={"0": 1},
    changelog_record_count=0,
    watermark=3,
    statistics="stat-a-0",
    properties={"k": "v"},
    next_row_id=0,
    operation="WRITE",
)


def test_the_keys_of_a_snapshot_are_those_of_the_page() -> None:
    assert {key for row in rows("4.1") for key in named(row[0])} == set(json.loads(SNAPSHOT.to_json()))


def test_a_snapshot_needs_the_keys_that_the_page_says_and_no_others() -> None:
    for keys, needed, _ in rows("4.1"):
        for key in named(keys):
            document = json.loads(SNAPSHOT.to_json())
            del document[key]
            if needed:
                with pytest.raises(CorruptTableError, match=key):
                    Snapshot.from_json(json.dumps(document))
            else:
                Snapshot.from_json(json.dumps(document))


def test_the_keys_of_a_schema_are_those_of_the_page() -> None:
    schema = create_schema("id INT NOT NULL, v STRING", ["id"], comment="c")
    assert {key for row in rows("3.1") for key in named(row[0])} == set(json.loads(schema.to_json()))


def test_the_fields_of_manifests_are_those_of_the_page_in_their_order() -> None:
    lists, (manifest, file), index = tables("5.2"), tables("5.3"), tables("5.4")
    assert [name for row in next(lists) for name in named(row[0])] == fields(MANIFEST_LIST_SCHEMA)
    assert [name for row in manifest for name in named(row[0])] == fields(MANIFEST_SCHEMA)
    assert [name for row in file for name in named(row[0])] == fields(MANIFEST_SCHEMA["fields"][-1]["type"])
    assert [name for row in next(index) for name in named(row[0])] == fields(INDEX_MANIFEST_SCHEMA)


def test_the_columns_of_a_data_file_have_the_ids_of_the_page() -> None:
    schema = create_schema("a STRING, id INT NOT NULL", ["id"])
    key, sequence, kind, *own = file_schema(schema, thin=False)
    ids = {name: text for name, _, text in rows("6.1")}
    found = {field.name: field.metadata[b"PARQUET:field_id"].decode() for field in (key, sequence, kind)}
    assert ids["`_SEQUENCE_NUMBER`"] == found["_SEQUENCE_NUMBER"]
    assert ids["`_VALUE_KIND`"] == found["_VALUE_KIND"]
    offset = ids["`_KEY_<name>`, for the trimmed primary key"].split(" ")[0]
    assert int(found["_KEY_id"]) == int(offset) + schema.field("id").id
    assert [field.name for field in own] == ["a", "id"]


@pytest.mark.parametrize(("row", "expected"), [tuple(row) for row in rows("8.4")], ids=lambda cell: cell)
def test_an_example_of_a_row_has_its_bytes(row: str, expected: str) -> None:
    types, values = parsed(row)
    assert encode_row(values, types)[4:].hex() == expected.strip("`").replace(" ", "")


@pytest.mark.parametrize(("row", "expected"), [row for row in rows("8.5") if "`" in row[1]], ids=lambda cell: cell)
def test_an_example_of_a_compacted_row_has_its_bytes(row: str, expected: str) -> None:
    types, values = parsed(row)
    columns = [pa.array([value], to_arrow(kind)) for value, kind in zip(values, types)]
    assert encode_compacted(columns, types)[0].as_py().hex() == expected.strip("`").replace(" ", "")


def test_processors_of_lookup_files_have_the_identifiers_of_the_page() -> None:
    assert [name for row in rows("20.5") for name in named(row[0])] == [member.value for member in ValueProcessor]


def test_compressions_of_blocks_have_the_codes_of_the_page() -> None:
    found = {text: int(code) for code, text, how in rows("20.2") if how != "not read"}
    assert found == {member.name.lower(): member.value for member in BlockCompression}


@pytest.mark.parametrize(("elements", "expected"), [tuple(row) for row in rows("8.6")], ids=lambda cell: cell)
def test_an_example_of_an_array_has_its_bytes(elements: str, expected: str) -> None:
    types, values = parsed(elements)
    array_type = parse_type(f"ARRAY<{types[0].sql()}>")
    found = nested_bytes(pa.array([values], to_arrow(array_type)), array_type)
    assert found[0].as_py().hex() == expected.strip("`").replace(" ", "")


@pytest.mark.parametrize(("key", "hashed", "of_4", "of_16"), [tuple(row) for row in rows("9.4")], ids=lambda cell: cell)
def test_an_example_of_a_key_has_its_hash_and_buckets(key: str, hashed: str, of_4: str, of_16: str) -> None:
    for spelling in re.split(r" \(and |, (?=BOOLEAN)", key.rstrip(")") if "(and" in key else key):
        types, values = parsed(spelling)
        columns = [pa.array([value], to_arrow(kind)) for value, kind in zip(values, types)]
        assert key_hashes(columns, types).tolist() == [int(hashed)]
        assert bucket_ids(columns, types, 4).tolist() == [int(of_4)]
        assert bucket_ids(columns, types, 16).tolist() == [int(of_16)]


def test_the_characters_that_the_page_names_are_escaped_in_partition_directories_and_no_others() -> None:
    text = re.search(r"^### 2\.3 [^\n]*\n(.*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert text is not None
    # The first name in backticks is the escape character.
    escaped = {*map(chr, range(32)), "\x7f", *named(text[1])[1:]}
    assert {code for code in map(chr, range(0x250)) if escape_path_name(code) != code} == escaped
    assert {escape_path_name(char) for char in escaped} == {f"%{ord(char):02X}" for char in escaped}


def test_row_kinds_have_the_codes_of_the_page() -> None:
    text = re.search(r"^### 12\.1 .*\n(.*)", PAGE, re.MULTILINE)
    assert text is not None
    assert re.findall(r"(\d) ([+-][IUD])", text[1]) == [(str(code), kind) for code, kind in enumerate(ROW_KINDS)]


def test_the_values_of_options_are_those_of_the_page() -> None:
    enums = [MergeEngine, ChangelogProducer, BucketFunction, SortOrder, ScanMode]
    assert [named(row[1]) for row in rows("17")] == [[member.value for member in enum] for enum in enums]


def test_lakelsms_additions_have_the_keys_of_the_page() -> None:
    # The data source has keys of Spark's own columns, which no file of a table has.
    paths = [path for path in (ROOT / "lakelsm").rglob("*.py") if "data_source" not in path.parts]
    sources = "".join(path.read_text(encoding="utf-8") for path in paths)
    keys = re.findall(r'^[A-Z_]+ = \(?b?"(lakelsm\.[a-z0-9-]+)"', sources, re.MULTILINE)
    properties = named(" ".join(row[0] for row in rows("18.1")))
    assert sorted(keys) == sorted([*properties, *named(" ".join(row[1] for row in rows("18.2")))])


def test_a_container_of_indexes_has_the_bytes_of_the_example() -> None:
    text = re.search(r"^### 7\.4 .*?^Example, column `v` .*?`([0-9a-f ]+)`", PAGE, re.MULTILINE | re.DOTALL)
    assert text is not None
    builder = FileIndexBuilder([(ColumnIndex(BLOOM_FILTER, "v", items=10, fpp=0.1), parse_type("STRING"))])
    builder.add(pa.table({"v": ["a", "b"]}))
    assert builder.encode().hex() == text[1].replace(" ", "")


def test_a_deletion_vector_has_the_bytes_of_the_example_in_both_layouts() -> None:
    text = re.search(r"^Example, rows 1 and 5: in 32 bits `([0-9a-f ]+)`, in 64 bits\n`([0-9a-f ]+)`", PAGE, re.MULTILINE)
    assert text is not None
    for bitmap64, example in ((False, text[1]), (True, text[2])):
        data, (entry,) = encode_vectors({"data-1.parquet": BitMap([1, 5])}, bitmap64)
        vector = bytes.fromhex(example)
        assert data == b"\x01" + vector
        assert (entry.offset, entry.length) == (1, len(vector) if bitmap64 else int.from_bytes(vector[:4], "big"))


def test_the_types_that_have_a_bloom_filter_are_those_of_the_page() -> None:
    named_there = {name for row in rows("7.5") for name in re.split(", ", row[0])}
    types = {root: parse_type(root) for root in ATOMIC_ROOTS - {"TIMESTAMP_LTZ"}}
    types["TIMESTAMP_LTZ"] = parse_type("TIMESTAMP WITH LOCAL TIME ZONE")
    assert named_there == {root for root, data_type in types.items() if can_have_index(BLOOM_FILTER, data_type)}
