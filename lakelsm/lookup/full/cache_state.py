"""The contents of a full cache (`CacheContents`), and its rows as of a snapshot, published as a file (`CacheState`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.errors import CorruptStoreError, LakelsmError
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import FoundRows, LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.generation import CacheLayout, Generation, GenerationFiles, SealedFile
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter

STATE = "state"
#: The prefix of the names of all other files of full caches.
NAME_PREFIX = "full-"
#: Prefixes of options that change no rows; all other options are assumed to change rows.
_NO_ROWS = ("lookup.", "cache-page-size", "continuous.", "scan.partitions")


@dataclass(frozen=True)
class CacheContents:
    """The content of a full cache: the ``layout`` of its rows; ``key_position`` is that of the lookup's key in it.

    ``unique``: each key has one row. ``found`` are the columns of a result, ``read`` those that changes must have.
    ``fingerprint`` is different for other rows, columns, types, or options that may change rows.
    """

    layout: CacheLayout
    key_position: int
    _: KW_ONLY
    unique: bool
    found: pa.Schema
    read: tuple[str, ...]
    fingerprint: str

    @staticmethod
    def of(spec: LookupSpec) -> CacheContents:
        """Return the contents that a lookup needs."""
        schema = spec.store.schema
        keys = [spec.key] if spec.by_primary_key else [schema.primary_keys, spec.key]
        stored = tuple(dict.fromkeys((*schema.primary_keys, *spec.key, *spec.columns)))
        layout = CacheLayout(
            tuple(map(schema.field, stored)), tuple(tuple(map(schema.field, key)) for key in keys)
        )
        options = sorted(item for item in schema.options.items() if not item[0].startswith(_NO_ROWS))
        described = repr((layout, spec.predicate, sorted(spec.buckets) if spec.buckets is not None else None, options))
        return CacheContents(
            layout,
            len(keys) - 1,
            unique=spec.by_primary_key,
            found=pa.schema([layout.schema.field(name) for name in spec.columns]),
            read=tuple(dict.fromkeys((*stored, *sorted(spec.read_columns)))),
            fingerprint=blake2b(described.encode(), digest_size=16).hexdigest(),
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of a result."""
        return tuple(self.found.names)

    @property
    def no_keys(self) -> pa.Table:
        """An empty table of keys."""
        schema = self.layout.schema
        return pa.schema([schema.field(field.name) for field in self.layout.keys[self.key_position]]).empty_table()


@dataclass(frozen=True)
class CacheState:
    """The rows of a cache as of a snapshot (None: an empty table), oldest generation first. It never changes.

    ``name`` is unique. ``content`` is the fingerprint of the `CacheContents`.
    """

    name: str
    snapshot: Snapshot | None
    generations: tuple[Generation, ...]
    _: KW_ONLY
    content: str

    def find(self, contents: CacheContents, keys: pa.Table) -> FoundRows:
        """Find the rows of some keys; those of a key have the order of the generations. Raises CorruptStoreError."""
        parts: list[FoundRows] = []
        left = np.arange(len(keys))
        for generation in self.generations:
            wanted = keys if len(left) == len(keys) else keys.take(pa.array(left))
            found, rows = generation.row_indexes(contents.key_position, wanted)
            if len(rows):
                parts.append(FoundRows(left[found], generation.rows.take(rows, contents.found.names)))
            if contents.unique:
                if len(found) == len(left):
                    break
                left = np.delete(left, found)
        return FoundRows.combined(parts or [FoundRows(np.empty(0, np.int64), contents.found.empty_table())])

    def find_plain(self, contents: CacheContents, key: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """Return the rows of one key, as `Cache.find_plain` does. Raises CorruptStoreError."""
        found: list[tuple[Any, ...]] = []
        key_position, names = contents.key_position, contents.names
        if not self.generations:
            return found
        key_hash = self.generations[0].keyed[key_position].hash_of(key)
        if key_hash is None:
            return None
        for generation in self.generations:
            if not generation.keyed[key_position].index.may_have(key_hash):
                continue
            found += [generation.rows.row(row, names) for row in generation.live_rows_of(key_position, key, key_hash)]
            if contents.unique and found:
                break
        return found

    @property
    def names(self) -> set[str]:
        """The names of the files of the state."""
        return {name for generation in self.generations for name in generation.files.names}

    def publish(self, directory: CacheDirectory) -> None:
        """Make this the state of the locked directory, and remove the files that it does not need."""
        state = {
            "name": self.name,
            "content": self.content,
            "snapshot": None if self.snapshot is None else self.snapshot.to_json(),
            "generations": [asdict(generation.files) for generation in self.generations],
        }
        directory.publish(STATE, partial(_write, state))
        for name in set(directory.names()) - self.names:
            if name.startswith(NAME_PREFIX):
                directory.discard(name)


def published_state(
    directory: CacheDirectory, layout: CacheLayout, content: str, own: CacheState | None
) -> CacheState | None:
    """Return the state of a locked directory; ``own`` if it is the same, None if there is none.

    A state of another ``content`` is returned without generations. Raises CorruptStoreError for a damaged state.
    """
    path = directory.file(STATE)
    if not os.path.lexists(path):
        return None
    with StoreFile(path) as file:
        state = file.facts
    try:
        if own is not None and state["name"] == own.name:
            return own
        snapshot = None if state["snapshot"] is None else Snapshot.from_json(state["snapshot"], str(path))
        listed = [] if state["content"] != content else [_files(each) for each in state["generations"]]
    except (LakelsmError, KeyError, TypeError) as error:
        raise CorruptStoreError(f"{path} is of another version ({error!r}). The cache is loaded again.") from error
    generations = tuple(Generation.open(directory, layout, files) for files in listed)
    return CacheState(state["name"], snapshot, generations, content=state["content"])


def _write(state: dict[str, Any], path: Path) -> None:
    with StoreFileWriter(path) as writer:
        writer.finish(state)


def _files(value: Any) -> GenerationFiles:
    def sealed(each: Any) -> SealedFile:
        return SealedFile(each["name"], each["seal"])

    segments, indexes = (tuple(map(sealed, value[part])) for part in ("segments", "indexes"))
    dead = None if value["dead"] is None else sealed(value["dead"])
    return GenerationFiles(segments, indexes, dead, rows=value["rows"], dead_rows=value["dead_rows"])
