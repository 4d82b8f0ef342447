"""The written schemas are Java's."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro
import pytest

from lakelsm.format.manifest import encode_manifest
from lakelsm.format.manifest.avro_schemas import INDEX_MANIFEST_SCHEMA, MANIFEST_LIST_SCHEMA, MANIFEST_SCHEMA
from tests.format.manifest.manifest_samples import entry, golden_files


def test_the_written_schema_is_javas(tmp_path: Path) -> None:
    files = dict(golden_files(tmp_path, "simple/manifest/manifest-966b1a42*-0"))
    java = fastavro.reader(io.BytesIO(files.popitem()[1].read_bytes())).writer_schema
    ours = fastavro.reader(io.BytesIO(encode_manifest([entry()]))).writer_schema
    assert ours == java


def unions(schema: Any) -> list[list[Any]]:
    """Return all unions within a schema."""
    if isinstance(schema, list):
        return [schema, *(found for branch in schema for found in unions(branch))]
    if not isinstance(schema, dict):
        return []
    parts = [schema.get("items"), schema.get("type"), *(item["type"] for item in schema.get("fields", []))]
    return [found for part in parts for found in unions(part)]


@pytest.mark.parametrize("schema", [MANIFEST_SCHEMA, MANIFEST_LIST_SCHEMA, INDEX_MANIFEST_SCHEMA])
def test_null_is_the_first_branch_and_the_default_as_java_needs_it(schema: Any) -> None:
    assert unions(schema) and all(union[0] == "null" and len(union) == 2 for union in unions(schema))
    optional = [item for item in schema["fields"] if isinstance(item["type"], list)]
    assert all(item["default"] is None for item in optional)
    assert all("default" not in item for item in schema["fields"] if item not in optional)
