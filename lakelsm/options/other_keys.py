"""Keys of Paimon's options that lakelsm does not support, and the check of unknown keys.

A key that is not declared in `lakelsm.options` is unknown: it is refused when a table is created, and ignored when a
table is opened.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options.accepted_keys import ACCEPTED_KEYS, check_accepted_value
from lakelsm.options.field_options import DEFAULT_AGGREGATE_KEY, FIELD_OPTIONS, split_field_key
from lakelsm.options.file_index_options import check_index_key, split_index_key
from lakelsm.options.table_options import OPTIONS
from lakelsm.secret_values import REDACTED, is_secret

# Keys of features that lakelsm does not support, with the text that disables the feature. Another text is refused when
# a table is created or opened, because reads and writes without the feature would be wrong.
FEATURE_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "chain-table.enabled": "false",
        "clustering.incremental": "false",
        "data-file.external-paths": "",
        "data-file.path-directory": "",
        "global-index.external-path": "",
        "index-file-in-data-file-dir": "false",
        "pk-bitmap.index.columns": "",
        "pk-btree.index.columns": "",
        "pk-clustering-override": "false",
        "pk-full-text.index.columns": "",
        "pk-multivalue.index.columns": "",
        "pk-vector.index.columns": "",
        "query-auth.enabled": "false",
        "scan.bucket": "",
        "scan.primary-branch": "",
    }
)

# The same for features of new files and commits: an existing table can be read, but not written.
WRITE_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "changelog-file.format": "parquet",
        "file.compression.per.level": "",
        "file.format.per.level": "",
        "metadata.iceberg.storage": "disabled",
    }
)

# The same for features of storage and maintenance: an existing table can be read and written.
UPKEEP_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "batch-scan-mode": "none",
        "commit.force-create-snapshot": "false",
        "manifest-sort.enabled": "false",
        "manifest.delete-file-drop-stats": "false",
        "metadata.stats-mode.per.level": "",
        "partition.mark-done.recover-from-state": "true",
        "scan.ignore-corrupt-files": "false",
        "scan.ignore-lost-files": "false",
        "snapshot.ignore-empty-commit": "true",
        "stream-scan-mode": "none",
    }
)

# Keys that lakelsm does not support: refused when a table is created. An issue that builds one deletes its line.
# (Features that also prevent opening a table are in lakelsm/schema/unbuilt_features.py.)
UNBUILT_KEYS: tuple[str, ...] = (
    "clustering.columns",
    "commit.callbacks",
    "commit.discard-duplicate-files",
    "commit.strict-mode.last-safe-snapshot",
    "compaction.skip-expired-partitions",
    "data-file.external-paths.specific-fs",
    "data-file.external-paths.strategy",
    "data-file.external-paths.weights",
    "file.suffix.include.compression",
    "incremental-between-scan-mode",
    "incremental-between-tag-to-snapshot",
    "key-value.sequence_number.enabled",
    "metastore.tag-to-partition",
    "metastore.tag-to-partition.preview",
    "partition.sink-strategy",
    "partition.timestamp-format.strict",
    "path",
    "postpone.batch-write-fixed-bucket.rescale-load-factor",
    "postpone.merge-on-read",
    "postpone.target-row-num-per-bucket",
    "postpone.target-size-per-bucket",
    "scan.plan-auto-tag-for-read.time-retained",
    "sink.clustering.by-columns",
    "sink.clustering.strategy",
)
UNBUILT_PREFIXES: tuple[str, ...] = (
    "blob",
    "chain-table.",
    "clustering.",
    "commit.callback.",
    "data-evolution.",
    "file-index.bsi.",
    "file-index.range-bitmap.",
    "format-table.",
    "full-text-index.",
    "global-index.",
    "local-kv-db.",
    "lookup.blob",
    "lookup.remote-file.",
    "materialized-table.",
    "parquet.",
    "partition.mark-done-action.",
    "pk-",
    "row-tracking.",
    "scalar-index.",
    "scan.fallback-",
    "tag.",
    "variant.",
    "parquet.variant.",
    "vector",
    "visibility-callback.",
)


def check_new_keys(options: Mapping[str, str]) -> None:
    """Check the keys of a new table, or of the options of a write.

    Raises InvalidInputError for an unknown key, with the nearest known one, and for an invalid text of an accepted key.
    """
    known = _known_keys()
    for key, text in options.items():
        check_accepted_value(key, text)
        split, of_index = split_field_key(key), split_index_key(key)
        if split is not None:
            _check_field_key(key, split[1])
        elif of_index is not None:
            check_index_key(key, *of_index)
        elif key not in known and not _is_unbuilt(key):
            near = difflib.get_close_matches(key, sorted(known), n=1)
            hint = f"Use '{near[0]}'." if near else "docs/options.md lists all options."
            raise InvalidInputError(f"option {shown_option(key, text)} is unknown. {hint}")


def check_unbuilt_keys(options: Mapping[str, str]) -> None:
    """Raise UnsupportedFeatureError for a key of Paimon that lakelsm does not support."""
    known = _known_keys()
    for key, text in options.items():
        if key not in known and split_field_key(key) is None and _is_unbuilt(key):
            raise UnsupportedFeatureError(
                f"option {shown_option(key, text)} is not supported. Remove it to create the table."
            )


def shown_option(key: str, text: str) -> str:
    """Return a key and its value for a message, without the value of an unknown key that may be a secret."""
    return f"'{key}' = '{REDACTED if holds_secret(key) else text}'"


def holds_secret(key: str) -> bool:
    """Return whether an option may hold a secret; the options that lakelsm knows hold none."""
    return (
        is_secret(key) and key not in _known_keys() and split_field_key(key) is None and split_index_key(key) is None
    )


def _known_keys() -> frozenset[str]:
    fallbacks = {key for declaration in OPTIONS.values() for key in declaration.fallback_keys}
    features = (*FEATURE_KEYS, *WRITE_KEYS, *UPKEEP_KEYS)
    return frozenset({*OPTIONS, *fallbacks, *ACCEPTED_KEYS, *features, DEFAULT_AGGREGATE_KEY})


def _is_unbuilt(key: str) -> bool:
    return key in UNBUILT_KEYS or key.startswith(UNBUILT_PREFIXES)


def _check_field_key(key: str, name: str) -> None:
    # The rules of `schema` check a nested path such as fields.row.member.aggregate-function.
    if name in FIELD_OPTIONS or any(name.endswith("." + known) for known in FIELD_OPTIONS):
        return
    near = difflib.get_close_matches(name, FIELD_OPTIONS, n=1)
    hint = f"Use '{near[0]}'." if near else f"Use one of {', '.join(FIELD_OPTIONS)}."
    raise InvalidInputError(f"option '{key}': '{name}' is not an option of columns. {hint}")
