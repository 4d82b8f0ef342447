"""The newest batch of each streaming query, in a property of snapshots (docs/format.md 18.1).

A query that restarts repeats its last batch. Each snapshot inherits the property of its predecessor, so that the repeated
batch is known as committed also if the snapshots of the query have expired.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.inheritance import inherited_property

#: Key of the snapshot property. Persisted: do not change
STREAM_PROGRESS_PROPERTY = "lakelsm.stream-progress"

#: Limits of a snapshot: commit users, and characters. The users whose batches are the oldest are left out.
_MAX_USERS, _MAX_CHARACTERS = 100, 8192


@dataclass(frozen=True)
class StreamProgress:
    """The newest committed batch of a commit user that belongs to a streaming query."""

    query_id: str
    batch_id: int


def stream_progress(
    latest: Snapshot | None, older: Callable[[int], Snapshot | None]
) -> dict[str, StreamProgress]:
    """Return the progress by commit user as of a snapshot, the user of the newest batch last.

    ``older`` is as in `inherited_property`. Raises CorruptTableError for a damaged property.
    """
    text = inherited_property(latest, older, STREAM_PROGRESS_PROPERTY)
    if text is None:
        return {}
    try:
        return {user: _progress(*values) for user, values in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptTableError(
            f"Snapshot {latest and latest.id}: property {STREAM_PROGRESS_PROPERTY!r}: {text[:50]!r} does not map commit "
            "users to batches."
        ) from error


def _progress(query_id: object, batch_id: object) -> StreamProgress:
    if not isinstance(query_id, str) or type(batch_id) is not int:
        raise TypeError
    return StreamProgress(query_id, batch_id)


def with_stream_progress(
    properties: Mapping[str, str], known: Mapping[str, StreamProgress], user: str, batch: StreamProgress | None
) -> dict[str, str]:
    """Return ``properties`` with the progress that is ``known`` and, if there is one, a new ``batch`` of a user."""
    users = dict(known)
    if batch is not None:
        before = users.pop(user, None)
        highest = batch.batch_id if before is None else max(before.batch_id, batch.batch_id)
        users[user] = StreamProgress(batch.query_id, highest)
    newest: list[str] = []
    characters = 2
    for name, progress in list(reversed(users.items()))[:_MAX_USERS]:
        text = f"{json.dumps(name)}:{json.dumps([progress.query_id, progress.batch_id], separators=(',', ':'))}"
        characters += len(text) + 1
        if characters > _MAX_CHARACTERS:
            break
        newest.append(text)
    if not newest:
        return dict(properties)
    return {**properties, STREAM_PROGRESS_PROPERTY: f"{{{','.join(reversed(newest))}}}"}
