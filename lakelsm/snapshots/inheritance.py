"""What a snapshot inherits from the one before it: the number of buckets of all its files, and table statistics.

A writer must know that no file of another number lies where it writes: a key in two buckets would be two rows. Schema
files do not record this: a rescale of Java may use a number that no schema has. So each snapshot records it,
and the next inherits it. A snapshot of another writer lacks it: then a writer reads the manifests once, and its
own snapshot records it again. Statistics (docs/format.md 4.4) stay those of the table while its schema does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from lakelsm.errors import CorruptTableError
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot
from lakelsm.storage import FileIO

#: Key of the snapshot property. Persisted: do not change
TOTAL_BUCKETS_PROPERTY = "lakelsm.total-buckets"

#: A size that no statistics file has.
_MAX_STATISTICS_BYTES = 64 << 20

_NUMBER = re.compile(r"[1-9][0-9]{0,9}")


def recorded_total_buckets(snapshot: Snapshot) -> int | None:
    """Return the number that a snapshot of lakelsm records, or None."""
    text = snapshot.own_properties.get(TOTAL_BUCKETS_PROPERTY)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise CorruptTableError(
            f"snapshot {snapshot.id} has {text[:50]!r} under {TOTAL_BUCKETS_PROPERTY}, which is no number of buckets"
        )
    return int(text)


def with_total_buckets(
    properties: Mapping[str, str], latest: Snapshot | None, found: int | None, delta: Iterable[ManifestEntry]
) -> dict[str, str]:
    """Return the properties of the snapshot after ``latest``: those given, and the number if all its files have one.

    ``found`` is the number of the files of ``latest``, if the manifests were read.
    """
    added = {entry.total_buckets for entry in delta if entry.kind == FileKind.ADD}
    known = next(iter(added), None) if latest is None else recorded_total_buckets(latest) or found
    if known is None or known <= 0 or not added <= {known}:
        return dict(properties)
    return {**properties, TOTAL_BUCKETS_PROPERTY: str(known)}


def inherited_statistics(
    file_io: FileIO, paths: TablePaths, latest: Snapshot | None, schema_id: int
) -> str | None:
    """Return the name of the newest snapshot's statistics file if it is of this schema, else None.

    Statistics are an aid: a file that is missing or damaged is not inherited and fails no commit.
    """
    if latest is None or latest.statistics is None:
        return None
    try:
        document = json.loads(file_io.read(paths.statistics(latest.statistics), _MAX_STATISTICS_BYTES))
    except (OSError, ValueError, RecursionError, CorruptTableError):
        return None
    same = isinstance(document, dict) and document.get("schemaId") == schema_id
    return latest.statistics if same else None
