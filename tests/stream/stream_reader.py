"""A reader of a table's stream for tests: it checks each batch, and applies the changes to a dict."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm import Catalog, Table
from lakelsm.read.changelog_tasks import POSITION_COLUMNS
from lakelsm.stream.change_feed import ChangeFeed
from lakelsm.stream.feed_part import FeedPart
from lakelsm.stream.feed_settings import STREAM_OPTIONS, FeedSettings
from lakelsm.stream.stream_limits import UNLIMITED, StreamLimits
from lakelsm.stream.stream_offset import StreamOffset
from lakelsm.types import output_arrow
from tests.engines import plain_rows
from tests.option_keys import option_keys

#: (kind, column values …)
Change = tuple[Any, ...]


def table_of(folder: Path, producer: str = "none", columns: str = "k INT, v STRING", **options: str) -> Table:
    """Create the table db.t with the key k. Its writes compact nothing, unless ``write_only`` is 'false'."""
    keys = {"bucket": "1", "write-only": "true", "changelog-producer": producer, **option_keys(options)}
    return Catalog(str(folder)).create_table("db.t", columns, primary_key=["k"], options=keys)


def put(table: Table, *rows: Change) -> None:
    """Write (kind, k, v) rows."""
    kinds, keys, values = zip(*rows)
    table.write(pa.table({"op": kinds, "k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.string())}), "op")


def feed_of(table: Table, **options: object) -> ChangeFeed:
    """Return a feed with some options: `scan_mode` is 'scan.mode', as for Python's names of them."""
    store, known = table._store(), {re.sub("[.-]", "_", key): key for key in STREAM_OPTIONS}
    return ChangeFeed(store, FeedSettings.of_options(store, {known[key]: str(value) for key, value in options.items()}))


def rows_of(feed: ChangeFeed, parts: Sequence[FeedPart], positions: bool = False) -> list[Change]:
    """Return the changes of some parts, which are pickled as for Spark's tasks."""
    fields = [pa.field("rowkind", pa.string())]
    fields += [pa.field(field.name, output_arrow(field.type, "ns")) for field in feed.store.schema.fields]
    fields += [pa.field(name, pa.int64()) for name in POSITION_COLUMNS] if positions else []
    schema = pa.schema(fields)
    task = pickle.loads(pickle.dumps(feed.task(parts, schema, "rowkind", positions=positions)))
    batches = [batch for part in pickle.loads(pickle.dumps(parts)) for batch in task(part)]
    return plain_rows(pa.Table.from_batches(batches, schema))


class StreamReader:
    """Reads a stream batch by batch. ``batches`` has the rows of each batch, ``state`` the rows by key."""

    def __init__(self, table: Table, limits: StreamLimits = UNLIMITED, **options: object) -> None:
        self.table = table
        self.limits = limits
        self.options = options
        self.feed = feed_of(table, **options)
        self.offset = self.feed.first()
        self.batches: list[list[Change]] = []
        self.state: dict[Any, Change] = {}

    def restart(self) -> None:
        """Make another feed, which continues from the offset's JSON."""
        self.feed = feed_of(self.table, **self.options)
        self.offset = StreamOffset.of_json(json.loads(json.dumps(self.offset.to_json())))

    def read(self, most: int = 1000) -> list[Change]:
        """Read batches until nothing is left, and return their rows."""
        found: list[Change] = []
        for _ in range(most):
            end = self.feed.next(self.offset, self.limits)
            if end == self.offset:
                return found
            parts = self.feed.plan(self.offset, end)
            assert parts == self.feed.plan(self.offset, end)
            rows = rows_of(self.feed, parts)
            self.batches.append(rows)
            self.apply(rows)
            found += rows
            self.feed.record(end)
            self.offset = end
        return found

    def apply(self, rows: Sequence[Change]) -> None:
        for kind, key, *values in rows:
            if kind in ("+I", "+U"):
                self.state[key] = (key, *values)
            elif kind == "-D":
                self.state.pop(key, None)

    def rows(self) -> list[Change]:
        return sorted(self.state.values())


def table_rows(table: Table, **more: object) -> list[Change]:
    """Return the rows of a table in the order of its key."""
    return sorted(plain_rows(table.to_arrow(**more)))  # type: ignore[arg-type]


def within(offset: StreamOffset, position: int, files: int) -> StreamOffset:
    """Return an offset at a position that the table may not have."""
    return replace(offset, position=position, files=files)
