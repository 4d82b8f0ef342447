"""A reference merge of all merge engines, row by row in plain Python, written from the documents alone.

It shares nothing with lakelsm but the bytes of 64-bit bitmaps: no Arrow, no numpy. A record is a `Record`; values are
what pyarrow's ``to_pylist`` gives (a map is a list of pairs, a row a dict). `Refused` stands for every input that a
merge must refuse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.merge.function_oracle import Column, Function, Refused
from tests.oracle import DELETE, INSERT, sort_key, strength

__all__ = ["Column", "Record", "Refused", "Table"]


@dataclass(frozen=True)
class Record:
    """One record of a key: its sequence number, its kind, and its columns by name."""

    number: int
    kind: int
    row: Mapping[str, Any]

    @property
    def retracts(self) -> bool:
        return self.kind in (1, 3)


@dataclass(frozen=True)
class Table:
    """The rules of a table for merges. ``groups`` are pairs of sequence columns and governed columns."""

    engine: str
    columns: Sequence[Column]
    sequence: Sequence[str] = ()
    descending: bool = False
    groups: Sequence[tuple[Sequence[str], Sequence[str]]] = ()
    ignore_delete: bool = False
    remove_on_delete: bool = False
    remove_on_groups: Sequence[str] = ()

    def ordered(self, records: Sequence[Record]) -> list[Record]:
        """Records of one key in merge order; records that tie keep their order."""

        def rank(record: Record) -> Any:
            sequence = [strength(record.row[name], self.descending) for name in self.sequence]
            return sequence, record.number, not record.retracts

        return sorted(records, key=rank)

    def merge(self, records: Sequence[Record], alone: bool = False) -> Record | None:
        """Return the record that those of one key merge to, None for none; ``alone``: a single record is merged too."""
        if self.engine == "deduplicate":
            kept = [record for record in self.ordered(records) if not (self.ignore_delete and record.retracts)]
            return kept[-1] if kept else None
        if len(records) == 1 and not alone:
            return records[0]
        ordered = self.ordered(records)
        if self.engine == "first-row":
            return self._first(ordered)
        return self._aggregated(ordered) if self.engine == "aggregation" else self._updated(ordered)

    def _first(self, records: Sequence[Record]) -> Record | None:
        if any(record.retracts for record in records) and not self.ignore_delete:
            raise Refused
        return next((record for record in records if not record.retracts), None)

    def _aggregated(self, records: Sequence[Record]) -> Record:
        functions = {c.name: Function("last_value" if c.name in self.sequence else c.function, c) for c in self.columns}
        row: dict[str, Any] = dict.fromkeys(functions)
        removed = False
        for record in records:
            removed = self.remove_on_delete and record.kind == DELETE
            if removed:
                row = {name: record.row[name] for name in functions}
                continue
            for name, function in functions.items():
                step = function.retract if record.retracts else function.add
                row[name] = step(row[name], record.row[name])
        return Record(records[-1].number, DELETE if removed else INSERT, row)

    def _updated(self, records: Sequence[Record]) -> Record:
        state = _PartialUpdate(self)
        for record in records:
            state.take(record)
        kind = DELETE if state.removed or not state.met_insert else INSERT
        return Record(state.number, kind, state.row)


class _PartialUpdate:
    """The state of one key while its records are merged one by one."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.row: dict[str, Any] = {column.name: None for column in table.columns}
        self.functions = {c.name: Function(c.function, c) for c in table.columns if c.function}
        self.number = 0
        self.removed = self.met_insert = self.filled = False

    def take(self, record: Record) -> None:
        self.removed = False
        if record.retracts:
            if not self.filled:
                self._start(record)
                self.filled = True
            if not self.table.ignore_delete:
                self.number = record.number
                self._retract(record)
            return
        self.number = record.number
        self.met_insert = self.filled = True
        for ordering, governed in self.table.groups:
            self._update_group(record, ordering, governed)
        grouped = {name for ordering, governed in self.table.groups for name in (*ordering, *governed)}
        for name in self.row:
            if name not in grouped and record.row[name] is not None:
                self.row[name] = record.row[name]

    def _start(self, record: Record) -> None:
        self.row = {name: record.row[name] for name in self.row}

    def _newer(self, record: Record, ordering: Sequence[str]) -> bool:
        return sort_key(record.row[n] for n in ordering) >= sort_key(self.row[n] for n in ordering)

    def _update_group(self, record: Record, ordering: Sequence[str], governed: Sequence[str]) -> None:
        if all(record.row[name] is None for name in ordering):
            return
        newer = self._newer(record, ordering)
        for name in governed:
            function = self.functions.get(name)
            if newer:
                value = record.row[name]
                self.row[name] = value if function is None else function.add(self.row[name], value)
            elif function is not None:
                self.row[name] = function.add_reversed(self.row[name], record.row[name])
        if newer:
            self.row.update({name: record.row[name] for name in ordering})

    def _retract(self, record: Record) -> None:
        if not self.table.groups:
            if not self.table.remove_on_delete:
                raise Refused
            if record.kind == DELETE:
                self._start(record)
                self.removed = True
            return
        present = [g for g in self.table.groups if any(record.row[name] is not None for name in g[0])]
        newer = [self._newer(record, ordering) for ordering, _ in present]
        for (ordering, _), is_newer in zip(present, newer):
            if is_newer and record.kind == DELETE and set(ordering) & set(self.table.remove_on_groups):
                self._start(record)
                self.removed = True
                return
        for (ordering, governed), is_newer in zip(present, newer):
            for name in governed:
                if name in self.functions:
                    self.row[name] = self.functions[name].retract(self.row[name], record.row[name])
                elif is_newer:
                    self.row[name] = None
            if is_newer:
                self.row.update({name: record.row[name] for name in ordering})
