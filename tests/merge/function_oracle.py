"""The aggregate functions of the reference merge, value by value in plain Python, written from the documents alone."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from pyroaring import BitMap, BitMap64

from lakelsm.format.index.roaring64 import decode_roaring64, encode_roaring64
from tests.oracle import java_value, sort_key

INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class Refused(Exception):
    """An input that every merge refuses."""


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


class Function:
    """One aggregate function of one key. It remembers whether it has seen a first value."""

    def __init__(self, name: str | None, column: Column) -> None:
        self.name = name or "last_non_null_value"
        self.column = column
        self.seen = False

    def add(self, held: Any, value: Any) -> Any:
        """Return the accumulator after ``value``."""
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
        """Return the accumulator after a value that precedes it."""
        appends = self.name == "collect" and not self.column.flag("ignore-retract")
        return self.add(held, value) if appends else self.add(value, held)

    def retract(self, held: Any, value: Any) -> Any:
        """Return the accumulator after a retraction of ``value``."""
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
        return value if java_value(held) < java_value(value) else held

    def _min(self, held: Any, value: Any) -> Any:
        return value if java_value(held) > java_value(value) else held

    def _bool_and(self, held: bool, value: bool) -> bool:
        return held and value

    def _bool_or(self, held: bool, value: bool) -> bool:
        return held or value

    def _rbm32(self, held: bytes, value: bytes) -> bytes:
        return bytes((BitMap.deserialize(held) | BitMap.deserialize(value)).serialize())

    def _rbm64(self, held: bytes, value: bytes) -> bytes:
        return encode_roaring64(BitMap64([*decode_roaring64(held), *decode_roaring64(value)]))

    # ---- numbers ----

    def _fit(self, number: Any) -> Any:
        """Return the number in the column's type: an error for integers, NULL for decimals that do not fit."""
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
        removed, result = list(value), []
        for element in held:
            if element in removed:
                removed.remove(element)
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
