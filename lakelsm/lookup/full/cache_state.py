"""The state of a full cache: the rows of a snapshot in generations, and the document that tells other processes of it."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.errors import CorruptStoreError, LakelsmError
from lakelsm.format.snapshot import Snapshot
from lakelsm.json_document import parse_object
from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.generation import CacheLayout, Generation, GenerationFiles, SealedFile
from lakelsm.lookup.store.store_file import opened

STATE = "state.json"
#: What the names of all other files of full caches begin with.
NAME_PREFIX = "full-"
#: What a state has is a snapshot, and a few hundred bytes for each of a few generations' files.
_MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class CacheState:
    """The rows that a cache has of a snapshot (None: an empty table), oldest generation first. It never changes.

    ``name`` is one that no other state has. ``content`` is the mark of the `CacheContents`.
    """

    name: str
    snapshot: Snapshot | None
    generations: tuple[Generation, ...]
    _: KW_ONLY
    content: str

    def find(self, key: int, keys: pa.Table, columns: pa.Schema, unique: bool) -> FoundRows:
        """The ``columns`` of the rows of some keys; ``key`` numbers an index, whose keys have one row each if ``unique``.

        Rows of a key come in the order of the generations. Raises CorruptStoreError for a damaged file.
        """
        parts: list[FoundRows] = []
        left = None
        for generation in self.generations:
            asked = keys if left is None else keys.take(pa.array(left))
            found, rows = generation.places(key, asked)
            if len(rows):
                probes = found if left is None else left[found]
                parts.append(FoundRows(probes, generation.rows.take(rows, columns.names)))
            if unique:
                missing = np.ones(len(asked), dtype=bool)
                missing[found] = False
                left = np.flatnonzero(missing) if left is None else left[missing]
                if not len(left):
                    break
        return FoundRows.together(parts or [FoundRows(np.empty(0, np.int64), columns.empty_table())])

    def rows_of(self, key: int, values: Sequence[Any], names: Sequence[str], unique: bool) -> list[tuple[Any, ...]]:
        """Columns of the rows of one key, as Python values as users get them. As `find`."""
        found: list[tuple[Any, ...]] = []
        key_hash = self.generations[0].keyed[key].hash_of(values) if self.generations else None
        for generation in self.generations:
            if key_hash is not None and not generation.keyed[key].index.may_have(key_hash):
                continue
            rows = generation.live_rows_of(key, values, key_hash)
            if rows:
                found += [generation.rows.row(row, names) for row in rows]
            if unique and found:
                break
        return found

    @property
    def names(self) -> set[str]:
        """The names of its files."""
        return {name for generation in self.generations for name in generation.files.names}

    def publish(self, directory: CacheDirectory) -> None:
        """Make it the state of the directory, and remove the files that it does not have. The directory is locked."""
        state = {
            "name": self.name,
            "content": self.content,
            "snapshot": None if self.snapshot is None else self.snapshot.to_json(),
            "generations": [asdict(generation.files) for generation in self.generations],
        }
        document = {"state": state, "checksum": _checksum(state)}
        directory.published(STATE, lambda path: _write(path, json.dumps(document)))
        self.discard_others(directory)

    def discard_others(self, directory: CacheDirectory) -> None:
        """Remove files of older states, and of work that was cut off. The directory is locked."""
        for name in set(directory.names()) - self.names:
            if name.startswith(NAME_PREFIX):
                directory.discard(name)


def published_state(
    directory: CacheDirectory, layout: CacheLayout, content: str, own: CacheState | None
) -> CacheState | None:
    """The state of a directory, which is ``own`` where it is the same; None: there is none. The directory is locked.

    One of another ``content`` comes without its generations. Raises CorruptStoreError for one that is damaged.
    """
    path = directory.file(STATE)
    if not os.path.lexists(path):
        return None
    try:
        with os.fdopen(opened(path), "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise CorruptStoreError(f"{path} cannot be read ({error}): the cache is made anew") from error
    try:
        if len(data) > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES} bytes")
        document = parse_object(data, str(path))
        state: Any = document["state"]
        if document["checksum"] != _checksum(state):
            raise ValueError("it has another checksum")
        if own is not None and state["name"] == own.name:
            return own
        snapshot = None if state["snapshot"] is None else Snapshot.from_json(state["snapshot"], str(path))
        listed = [_files(each) for each in state["generations"]]
    except (LakelsmError, ValueError, KeyError, TypeError) as error:
        raise CorruptStoreError(f"{path} is damaged ({error}): the cache is made anew") from error
    is_other = state["content"] != content
    generations = () if is_other else tuple(Generation.open(directory, layout, files) for files in listed)
    return CacheState(state["name"], snapshot, generations, content=state["content"])


def _files(value: Any) -> GenerationFiles:
    def sealed(each: Any) -> SealedFile:
        return SealedFile(each["name"], each["seal"])

    return GenerationFiles(
        tuple(map(sealed, value["segments"])),
        tuple(map(sealed, value["indexes"])),
        None if value["dead"] is None else sealed(value["dead"]),
        rows=value["rows"],
        dead_rows=value["dead_rows"],
    )


def _checksum(state: Any) -> int:
    return zlib.crc32(json.dumps(state, sort_keys=True).encode())


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="ascii")
