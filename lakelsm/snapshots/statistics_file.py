"""Table statistics that a snapshot inherits (docs/format.md 4.4)."""

from __future__ import annotations

import json

from lakelsm.errors import CorruptTableError
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot
from lakelsm.storage import FileIO

#: A size that no statistics file has.
_MAX_BYTES = 64 << 20


def inherited_statistics(
    file_io: FileIO, paths: TablePaths, latest: Snapshot | None, schema_id: int
) -> str | None:
    """Return the name of the newest snapshot's statistics file if it is of this schema, else None.

    Statistics are an aid: a file that is missing or damaged is not inherited and fails no commit.
    """
    if latest is None or latest.statistics is None:
        return None
    try:
        document = json.loads(file_io.read(paths.statistics(latest.statistics), _MAX_BYTES))
    except (OSError, ValueError, RecursionError, CorruptTableError):
        return None
    same = isinstance(document, dict) and document.get("schemaId") == schema_id
    return latest.statistics if same else None
