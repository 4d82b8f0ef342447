"""The values that a snapshot inherits from its predecessor: the number of buckets of its files, statistics, watermark.

A writer must know that all files have its number of buckets: a key in two buckets would be two rows. Schema files do not
record this, because a rescale of Java may use a number that no schema has. So each snapshot records it, and the next one
inherits it. A snapshot of another engine lacks it: then a writer reads the manifests once, and its snapshot records the
number again. Statistics (docs/format.md 4.4) are inherited as long as the schema stays the same.
The watermark never becomes lower: a commit of late events keeps it, as in Paimon.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping

from lakelsm.errors import CorruptTableError, LakelsmError
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot
from lakelsm.storage import FileIO

#: Key of the snapshot property. Persisted: do not change
TOTAL_BUCKETS_PROPERTY = "lakelsm.total-buckets"

#: The maximum size of a statistics file, in bytes.
_MAX_STATISTICS_BYTES = 64 << 20

_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
#: The number of snapshots that are searched for a property to inherit; those of other engines lack it.
_LONGEST_WALK = 10


def inherited_property(latest: Snapshot | None, older: Callable[[int], Snapshot | None], key: str) -> str | None:
    """Return a property that each snapshot of lakelsm inherits, as of a snapshot; None if it is missing.

    It is that of the newest snapshot of lakelsm, at most a few snapshots back, otherwise the one that another engine
    copied. ``older`` reads a snapshot by its id; one that cannot be read ends the search.
    """
    current, copied = latest, None
    for _ in range(_LONGEST_WALK):
        if current is None:
            break
        text = (current.properties or {}).get(key)
        if current.is_ours:
            return text
        copied = copied or text
        if current.id <= 1:
            break
        try:
            current = older(current.id - 1)
        except (OSError, LakelsmError):
            break
    return copied


def recorded_total_buckets(snapshot: Snapshot) -> int | None:
    """Return the number of buckets that a snapshot of lakelsm records, or None."""
    text = snapshot.own_properties.get(TOTAL_BUCKETS_PROPERTY)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise CorruptTableError(
            f"Snapshot {snapshot.id}: property {TOTAL_BUCKETS_PROPERTY!r}: {text[:50]!r} is not a number of buckets."
        )
    return int(text)


def with_total_buckets(
    properties: Mapping[str, str], latest: Snapshot | None, found: int | None, delta: Iterable[ManifestEntry]
) -> dict[str, str]:
    """Return ``properties`` for the snapshot after ``latest``, with the number of buckets if all its files have the same.

    ``found`` is the number of the files of ``latest`` if the manifests were read.
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

    A missing or damaged file is not inherited, and does not make a commit fail.
    """
    if latest is None or latest.statistics is None:
        return None
    try:
        document = json.loads(file_io.read(paths.statistics(latest.statistics), _MAX_STATISTICS_BYTES))
    except (OSError, ValueError, RecursionError, CorruptTableError):
        return None
    same = isinstance(document, dict) and document.get("schemaId") == schema_id
    return latest.statistics if same else None


def latest_watermark(*watermarks: int | None) -> int | None:
    """Return the maximum of the watermarks that are not None, or None."""
    return max((each for each in watermarks if each is not None), default=None)
