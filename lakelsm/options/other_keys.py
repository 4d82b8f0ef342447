"""Keys of Paimon's options that lakelsm has not built, and which keys it knows at all.

A key that is nowhere in `lakelsm.options` is unknown: refused when a table is created, tolerated when one is
opened.
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

# Keys of features that lakelsm has not built, with the text that leaves the feature out. Any other is refused, when a
# table is created and also when one is opened: reading or writing it without the feature would be wrong.
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

# The same for what only new files and commits need: an existing table is read, and not written to.
WRITE_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "changelog-file.format": "parquet",
        "file.compression.per.level": "",
        "file.format.per.level": "",
        "metadata.iceberg.storage": "disabled",
    }
)

# The same for what only concerns how files are kept: an existing table is read and written to.
UPKEEP_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "batch-scan-mode": "none",
        "commit.force-create-snapshot": "false",
        "manifest-sort.enabled": "false",
        "manifest.delete-file-drop-stats": "false",
        "metadata.stats-mode.per.level": "",
        "scan.ignore-corrupt-files": "false",
        "scan.ignore-lost-files": "false",
        "snapshot.ignore-empty-commit": "true",
        "stream-scan-mode": "none",
    }
)

# Paimon's keys whose effect lakelsm has not built: refused when a table is created. An issue that builds one
# deletes its line. (Features that also forbid opening a table are in lakelsm/schema/unbuilt_features.py.)
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
    "partition.idle-time-to-done",
    "partition.sink-strategy",
    "partition.time-interval",
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
    """Judges the keys of a new table (or of a write's options).

    Raises InvalidInputError naming the nearest known key for an unknown one, and for a text that an accepted key
    cannot have.
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
            hint = f"did you mean '{near[0]}'?" if near else "see docs/options.md"
            raise InvalidInputError(f"unknown option {shown_option(key, text)}: {hint}")


def check_unbuilt_keys(options: Mapping[str, str]) -> None:
    """Refuses keys of Paimon that are not built, by name."""
    known = _known_keys()
    for key, text in options.items():
        if key not in known and split_field_key(key) is None and _is_unbuilt(key):
            raise UnsupportedFeatureError(
                f"option {shown_option(key, text)} is not supported yet; remove it to create the table"
            )


def shown_option(key: str, text: str) -> str:
    """A key and its value for a message; the value of an unknown key that may be that of a secret is not shown."""
    return f"'{key}' = '{REDACTED if holds_secret(key) else text}'"


def holds_secret(key: str) -> bool:
    """Whether an option may hold a secret: none that lakelsm knows does."""
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
    # A nested path such as fields.row.member.aggregate-function is judged by the rules of `schema`.
    if name in FIELD_OPTIONS or any(name.endswith("." + known) for known in FIELD_OPTIONS):
        return
    near = difflib.get_close_matches(name, FIELD_OPTIONS, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(FIELD_OPTIONS)}"
    raise InvalidInputError(f"unknown column option '{name}' in '{key}': {hint}")
