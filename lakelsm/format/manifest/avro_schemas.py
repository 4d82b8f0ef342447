"""Avro schemas of manifest-like files as Java Paimon writes them (docs/format.md 5). Persisted: do not change."""

from __future__ import annotations

from typing import Any

_NAMESPACE = "org.apache.paimon.avro.generated"

#: The ``_VERSION`` of manifest and manifest-list records. Persisted: do not change
MANIFEST_VERSION = 2
#: The ``_VERSION`` of index-manifest records. Persisted: do not change
INDEX_MANIFEST_VERSION = 1


def _nullable(avro_type: Any) -> list[Any]:
    """Return a union with null first: Java fails on the other order."""
    return ["null", avro_type]


def _field(name: str, avro_type: Any) -> dict[str, Any]:
    if isinstance(avro_type, list):
        return {"name": name, "type": avro_type, "default": None}
    return {"name": name, "type": avro_type}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": f"{_NAMESPACE}.{name}", "fields": list(fields)}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _stats(name: str) -> dict[str, Any]:
    return _record(
        name,
        _field("_MIN_VALUES", "bytes"),
        _field("_MAX_VALUES", "bytes"),
        _field("_NULL_COUNTS", _nullable(_array(_nullable("long")))),
    )


DATA_FILE_SCHEMA: dict[str, Any] = _record(
    "record__FILE",
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_ROW_COUNT", "long"),
    _field("_MIN_KEY", "bytes"),
    _field("_MAX_KEY", "bytes"),
    _field("_KEY_STATS", _stats("record__FILE__KEY_STATS")),
    _field("_VALUE_STATS", _stats("record__FILE__VALUE_STATS")),
    _field("_MIN_SEQUENCE_NUMBER", "long"),
    _field("_MAX_SEQUENCE_NUMBER", "long"),
    _field("_SCHEMA_ID", "long"),
    _field("_LEVEL", "int"),
    _field("_EXTRA_FILES", _array("string")),
    _field("_CREATION_TIME", _nullable({"type": "long", "logicalType": "timestamp-millis"})),
    _field("_DELETE_ROW_COUNT", _nullable("long")),
    _field("_EMBEDDED_FILE_INDEX", _nullable("bytes")),
    _field("_FILE_SOURCE", _nullable("int")),
    _field("_VALUE_STATS_COLS", _nullable(_array("string"))),
    _field("_EXTERNAL_PATH", _nullable("string")),
    _field("_FIRST_ROW_ID", _nullable("long")),
    _field("_WRITE_COLS", _nullable(_array("string"))),
    _field("_WRITE_COLS_SEQUENCES", _nullable(_array("long"))),
)

MANIFEST_SCHEMA: dict[str, Any] = _record(
    "record",
    _field("_VERSION", "int"),
    _field("_KIND", "int"),
    _field("_PARTITION", "bytes"),
    _field("_BUCKET", "int"),
    _field("_TOTAL_BUCKETS", "int"),
    _field("_FILE", DATA_FILE_SCHEMA),
)

MANIFEST_LIST_SCHEMA: dict[str, Any] = _record(
    "record",
    _field("_VERSION", "int"),
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_NUM_ADDED_FILES", "long"),
    _field("_NUM_DELETED_FILES", "long"),
    _field("_PARTITION_STATS", _stats("record__PARTITION_STATS")),
    _field("_SCHEMA_ID", "long"),
    _field("_MIN_BUCKET", _nullable("int")),
    _field("_MAX_BUCKET", _nullable("int")),
    _field("_MIN_LEVEL", _nullable("int")),
    _field("_MAX_LEVEL", _nullable("int")),
    _field("_MIN_ROW_ID", _nullable("long")),
    _field("_MAX_ROW_ID", _nullable("long")),
)

INDEX_MANIFEST_SCHEMA: dict[str, Any] = _record(
    "record",
    _field("_VERSION", "int"),
    _field("_KIND", "int"),
    _field("_PARTITION", "bytes"),
    _field("_BUCKET", "int"),
    _field("_INDEX_TYPE", "string"),
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_ROW_COUNT", "long"),
    _field(
        "_DELETIONS_VECTORS_RANGES",
        _nullable(
            _array(
                _nullable(
                    _record(
                        "record__DELETIONS_VECTORS_RANGES",
                        _field("f0", "string"),
                        _field("f1", "int"),
                        _field("f2", "int"),
                        _field("_CARDINALITY", _nullable("long")),
                    )
                )
            )
        ),
    ),
    _field("_EXTERNAL_PATH", _nullable("string")),
    _field(
        "_GLOBAL_INDEX",
        _nullable(
            _record(
                "record__GLOBAL_INDEX",
                _field("_ROW_RANGE_START", "long"),
                _field("_ROW_RANGE_END", "long"),
                _field("_INDEX_FIELD_ID", "int"),
                _field("_EXTRA_FIELD_IDS", _nullable(_array("int"))),
                _field("_INDEX_META", _nullable("bytes")),
                _field("_SOURCE_META", _nullable("bytes")),
            )
        ),
    ),
)
