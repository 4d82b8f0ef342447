"""A reference merge of all merge engines, row by row in plain Python, written from the documents alone.

It shares nothing with lakelsm: no Arrow, no numpy. A record is a `Record`; values are what pyarrow's ``to_pylist`` gives
(a map is a list of pairs, a row a dict). `Refused` stands for every input that a merge must refuse.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from pyroaring import BitMap

from tests.oracle import DELETE, INSERT, sort_key, sort_value

INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class Refused(Exception):
    """An input that no merge takes."""


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
class Column:
    """A column: its type, its function and the function's options, by their names in Paimon."""

    name: str
    type: str
    function: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def flag(self, option: str) -> bool:
        return self.options.get(option) == "true"

    def names(self, option: str) -> list[str]:
        return [name for name in self.options.get(option, "").split(",") if name]


@dataclass(frozen=True)
class Table:
    """What a merge depends on. ``groups`` are pairs of sequence columns and governed columns."""

    engine: str
    columns: Sequence[Column]
    sequence: Sequence[str] = ()
    descending: bool = False
    groups: Sequence[tuple[Sequence[str], Sequence[str]]] = ()
    ignore_delete: bool = False
    remove_on_delete: bool = False
    remove_on_groups: Sequence[str] = ()

    def ordered(self, records: Sequence[Record]) -> list[Record]:
        """Records of one key in merge order; those that tie stay in the order given."""

        def priority(value: Any) -> Any:
            plain = sort_value(value)
            if not self.descending or value is None:
                return plain
            return (1, _Backwards(plain))

        return sorted(
            records, key=lambda r: ([priority(r.row[name]) for name in self.sequence], r.number, not r.retracts)
        )

    def merge(self, records: Sequence[Record]) -> Record | None:
        """The record that those of one key merge to; None for nothing at all."""
        if len(records) == 1:
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
        gone = False
        for record in records:
            gone = self.remove_on_delete and record.kind == DELETE
            if gone:
                row = {name: record.row[name] for name in functions}
                continue
            for name, function in functions.items():
                step = function.retract if record.retracts else function.add
                row[name] = step(row[name], record.row[name])
        return Record(records[-1].number, DELETE if gone else INSERT, row)

    def _updated(self, records: Sequence[Record]) -> Record:
        state = _PartialUpdate(self)
        for record in records:
            state.take(record)
        kind = DELETE if state.gone or not state.met_insert else INSERT
        return Record(state.number, kind, state.row)


class _Backwards:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Backwards) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backwards) and bool(self.value == other.value)


class _PartialUpdate:
    """The state of one key while its records are taken one after the other."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.row: dict[str, Any] = {column.name: None for column in table.columns}
        self.functions = {c.name: Function(c.function, c) for c in table.columns if c.function}
        self.number = 0
        self.gone = self.met_insert = self.filled = False

    def take(self, record: Record) -> None:
        self.gone = False
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
                self.gone = True
            return
        present = [g for g in self.table.groups if any(record.row[name] is not None for name in g[0])]
        newer = [self._newer(record, ordering) for ordering, _ in present]
        for (ordering, _), is_newer in zip(present, newer):
            if is_newer and record.kind == DELETE and set(ordering) & set(self.table.remove_on_groups):
                self._start(record)
                self.gone = True
                return
        for (ordering, governed), is_newer in zip(present, newer):
            for name in governed:
                if name in self.functions:
                    self.row[name] = self.functions[name].retract(self.row[name], record.row[name])
                elif is_newer:
                    self.row[name] = None
            if is_newer:
                self.row.update({name: record.row[name] for name in ordering})


class Function:
    """One aggregate function of one key: remembers whether it has seen a first value."""

    def __init__(self, name: str | None, column: Column) -> None:
        self.name = name or "last_non_null_value"
        self.column = column
        self.seen = False

    def add(self, held: Any, value: Any) -> Any:
        """The accumulator after ``value``."""
        if self.name == "last_value":
            return value
        if self.name == "last_non_null_value":
            return held if value is None else value
        if self.name == "first_value":
            return self._open(held, value, True)
        if self.name == "first_non_null_value":
            return self._open(held, value, value is not None)
        if self.name in ("collect", "listagg") or self.name.startswith("nested"):
            return getattr(self, f"_{self.name}")(held, value)
        if held is None or value is None:
            return value if held is None else held
        return getattr(self, f"_{self.name}")(held, value)

    def add_reversed(self, held: Any, value: Any) -> Any:
        """The accumulator after a value that belongs before it."""
        return self.add(held, value) if self.name == "collect" else self.add(value, held)

    def retract(self, held: Any, value: Any) -> Any:
        """The accumulator without ``value``."""
        if self.column.flag("ignore-retract"):
            return held
        undo: Callable[[Any, Any], Any] | None = getattr(self, f"_undo_{self.name}", None)
        if undo is None:
            raise Refused
        return undo(held, value)

    def _open(self, held: Any, value: Any, opens: bool) -> Any:
        if not self.seen and opens:
            self.seen = True
            return value
        return held

    def _undo_last_value(self, held: Any, value: Any) -> Any:
        return None

    def _undo_last_non_null_value(self, held: Any, value: Any) -> Any:
        return held if value is None else None

    def _max(self, held: Any, value: Any) -> Any:
        return value if sort_value(held) < sort_value(value) else held

    def _min(self, held: Any, value: Any) -> Any:
        return value if sort_value(held) > sort_value(value) else held

    def _bool_and(self, held: bool, value: bool) -> bool:
        return held and value

    def _bool_or(self, held: bool, value: bool) -> bool:
        return held or value

    def _rbm32(self, held: bytes, value: bytes) -> bytes:
        return bytes((BitMap.deserialize(held) | BitMap.deserialize(value)).serialize())

    # ---- numbers ----

    def _fit(self, number: Any) -> Any:
        """The number in the column's type: an error for integers, NULL for decimals that do not fit."""
        if isinstance(number, float):
            return struct.unpack("<f", struct.pack("<f", number))[0] if self.column.type == "FLOAT" else number
        if isinstance(number, Decimal):
            precision, scale = map(int, self.column.type.removeprefix("DECIMAL(").rstrip(")").split(","))
            exact = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=200))
            return exact if abs(exact) < Decimal(10) ** (precision - scale) else None
        half = 1 << (INTEGER_BITS[self.column.type] - 1)
        if not -half <= number < half:
            raise Refused
        return number

    def _sum(self, held: Any, value: Any) -> Any:
        if isinstance(held, Decimal):
            return self._fit(Context(prec=200).add(held, value))
        return self._fit(held + value)

    def _undo_sum(self, held: Any, value: Any) -> Any:
        if value is None:
            return held
        if held is None:
            return self._fit(-value)
        return self._sum(held, -value)

    def _product(self, held: Any, value: Any) -> Any:
        if isinstance(held, Decimal):
            return self._fit(Context(prec=200).multiply(held, value))
        try:
            return self._fit(held * value)
        except OverflowError:
            return math.inf if (held < 0) == (value < 0) else -math.inf

    def _undo_product(self, held: Any, value: Any) -> Any:
        if held is None or value is None:
            return held
        if isinstance(held, float):
            if value == 0:
                sign = math.copysign(1, held) * math.copysign(1, value)
                return math.nan if held == 0 or math.isnan(held) else sign * math.inf
            return self._fit(held / value)
        if value == 0:
            raise Refused
        if isinstance(held, Decimal):
            quotient = Context(prec=200).divide(held, value)
            if Context(prec=400).multiply(quotient, value) != held:
                raise Refused
            return self._fit(quotient)
        return self._fit(abs(held) // abs(value) * (1 if (held < 0) == (value < 0) else -1))

    # ---- collections ----

    def _listagg(self, held: str | None, value: str | None) -> str | None:
        delimiter = self.column.options.get("list-agg-delimiter", ",")
        if value is None or not value.strip():
            return held
        if held is None or not held.strip():
            return value
        if not self.column.flag("distinct"):
            return held + delimiter + value
        known = held.split(delimiter)
        for token in value.split(delimiter):
            if token.strip() and token not in known:
                known.append(token)
                held += delimiter + token
        return held

    def _collect(self, held: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
        if held is None and value is None:
            return None
        if not self.column.flag("distinct"):
            return value if held is None else held if value is None else held + value
        result: list[Any] = []
        for element in (held or []) + (value or []):
            if element not in result:
                result.append(element)
        return result

    def _undo_collect(self, held: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
        if held is None or not value:
            return held
        gone, result = list(value), []
        for element in held:
            if element in gone:
                gone.remove(element)
            else:
                result.append(element)
        return result

    def _merge_map(self, held: list[Any], value: list[Any]) -> list[Any]:
        return list({**dict(held), **dict(value)}.items())

    def _undo_merge_map(self, held: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
        if held is None or not value:
            return held
        return [(key, entry) for key, entry in held if key not in dict(value)]

    def _merge_map_with_keytime(self, held: list[Any], value: list[Any]) -> list[Any]:
        result = dict(held)
        for key, entry in value:
            if entry is None:
                result.pop(key, None)
            elif entry["ts"] is not None:
                old = result.get(key)
                if old is None or old["ts"] is None or entry["ts"] > old["ts"]:
                    result[key] = entry
        return list(result.items())

    def _nested_key(self, row: dict[str, Any]) -> tuple[Any, ...] | None:
        key = tuple(row[name] for name in self.column.names("nested-key"))
        if None in key:
            strategy = self.column.options.get("nested-key-null-strategy", "merge")
            if strategy == "error":
                raise Refused
            if strategy == "ignore":
                return None
        return key

    def _nested_update(self, held: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
        if value is None:
            return held
        limit = int(self.column.options.get("count-limit", 2**31 - 1))
        if not self.column.names("nested-key"):
            if held is not None and len(held) >= limit:
                return held
            room = limit - len(held or [])
            return [row for row in held or [] if row is not None] + [row for row in value if row is not None][:room]
        rows: dict[Any, Any] = {}
        order = self.column.names("nested-sequence-field")
        for limited, part in ((False, held or []), (True, value)):
            for row in part:
                key = None if row is None else self._nested_key(row)
                if key is None:
                    continue
                if key not in rows:
                    if not limited or len(rows) < limit:
                        rows[key] = row
                elif sort_key(row[n] for n in order) >= sort_key(rows[key][n] for n in order):
                    rows[key] = row
        return list(rows.values())

    def _undo_nested_update(self, held: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
        if held is None or value is None:
            return held
        if not self.column.names("nested-key"):
            return [row for row in held if row is not None and row not in value]
        rows = {self._nested_key(row): row for row in held if row is not None}
        for row in value:
            if row is not None:
                rows.pop(self._nested_key(row), None)
        rows.pop(None, None)
        return list(rows.values())

    def _nested_partial_update(self, held: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
        if value is None:
            return held
        rows: dict[Any, Any] = {}
        for row in (held or []) + value:
            key = None if row is None else self._nested_key(row)
            if key is None:
                continue
            old = rows.setdefault(key, dict.fromkeys(row))
            old.update({name: member for name, member in row.items() if member is not None})
        return list(rows.values())
