"""TIMESTAMP(7..9) in Arrow: nanoseconds, microseconds or text, by the same argument of every call that returns Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.types import parse_columns, to_arrow
from tests.compact.local_table import LocalTable
from tests.nano_times import times_of_nanos

#: Nanoseconds since 1970: the ends of the calendar and of Arrow's nanoseconds, times before 1970, and all digits.
_FIRST, _LAST = -62_135_596_800_000_000_000, 253_402_300_799_999_999_999
_WIDE = (_FIRST, _FIRST + 123_456_789, -(1 << 63) - 1, (1 << 63), -30_610_224_000_000_000_001, _LAST)
_NARROW = (-9_214_560_000_000_000_000, -1, -999, -1_001, 0, 1, 951_827_696_789_012_345, 9_214_646_399_999_999_999)
_COLUMNS = (
    "k INT NOT NULL, t TIMESTAMP(9), t8 TIMESTAMP(8), u TIMESTAMP(6), l TIMESTAMP_LTZ(9), l7 TIMESTAMP_LTZ(7), "
    "r ROW<x TIMESTAMP(9), z TIMESTAMP_LTZ(8)>, a ARRAY<TIMESTAMP(9)>, m MAP<STRING, ARRAY<TIMESTAMP(7)>>"
)
_FIELDS = parse_columns(_COLUMNS)
_EPOCH = datetime(1970, 1, 1)


def _table(folder: Path, nanos: tuple[int, ...]) -> Table:
    """Create a table with a row for each time, and one row of NULLs."""
    plain = LocalTable(folder, _COLUMNS, ("k",))
    times = times_of_nanos([*nanos, None]).to_pylist()
    of_7 = times_of_nanos([*(each // 100 * 100 for each in nanos), None]).to_pylist()
    of_8 = times_of_nanos([*(each // 10 * 10 for each in nanos), None]).to_pylist()
    micros = [*(each // 1_000 for each in nanos), None]
    values = {
        "k": list(range(len(times))),
        "t": times,
        "t8": of_8,
        "u": micros,
        "l": times,
        "l7": of_7,
        "r": [{"x": one, "z": other} for one, other in zip(times, of_8)],
        "a": [[each, None] for each in times],
        "m": [[("x", [each])] for each in of_7],
    }
    plain.write_columns(pa.table({each.name: pa.array(values[each.name], to_arrow(each.type)) for each in _FIELDS}))
    return Table.for_path(str(plain.root))


def _text(nanos: int) -> str:
    """Return a time as text, computed with Python's calendar."""
    seconds, fraction = divmod(nanos, 10**9)
    return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat(' ')}.{fraction:09}"


def _clock(nanos: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanos // 1_000)


#: Each call that returns the rows of a table in Arrow or pandas, converted to an Arrow table in key order.
_CALLS: Mapping[str, Callable[..., pa.Table]] = {
    "to_arrow": lambda table, **more: table.to_arrow(**more).sort_by("k"),
    "ordered": lambda table, **more: table.to_arrow(ordered=True, **more),
    "to_reader": lambda table, **more: table.to_reader(**more).read_all().sort_by("k"),
    "delta": lambda table, **more: table.changelog_reader(0, mode="delta", **more).read_all().sort_by("k"),
    "diff": lambda table, **more: table.changelog_reader(0, mode="diff", **more).read_all().sort_by("k"),
    "changelog_reader": lambda table, **more: table.changelog_reader(0, **more).read_all().sort_by("k"),
    "audit_log": lambda table, **more: table.inspect.system("audit_log").to_arrow(**more).sort_by("k"),
    "get_many": lambda table, **more: _looked_up(table, **more),
}


def _looked_up(table: Table, **more: Any) -> pa.Table:
    keys = pa.table({"k": pa.array(range(table.count().rows), pa.int32())})
    with table.lookup(cache="full") as full, table.lookup(cache="memory") as other:
        found = full.get_many(keys, **more)
        assert found == other.get_many(keys, **more)
    return found


def _flat(rows: pa.Table) -> dict[str, list[Any]]:
    """Return the values of each column, nested ones included."""
    columns = {name: rows.column(name).to_pylist() for name in ("t", "t8", "u", "l", "l7")}
    columns["x"] = [row["x"] for row in rows.column("r").to_pylist()]
    columns["z"] = [row["z"] for row in rows.column("r").to_pylist()]
    columns["a"] = [items[0] for items in rows.column("a").to_pylist()]
    columns["m"] = [pairs[0][1][0] for pairs in rows.column("m").to_pylist()]
    return columns


@pytest.mark.parametrize("nanos", [_WIDE, _NARROW], ids=["wide", "narrow"])
def test_texts_and_microseconds_cover_the_whole_calendar_in_every_call(tmp_path: Path, nanos: tuple[int, ...]) -> None:
    table = _table(tmp_path, nanos)
    digits = {"t": 1, "t8": 10, "l": 1, "l7": 100, "x": 1, "z": 10, "a": 1, "m": 100}
    for name, call in _CALLS.items():
        texts, micros = _flat(call(table, timestamps="text")), _flat(call(table, timestamps="us"))
        for column, digit in digits.items():
            cut = [each // digit * digit for each in nanos]
            assert texts[column] == [*map(_text, cut), None], (name, column)
            shown = [each and each.replace(tzinfo=None) for each in micros[column]]
            assert shown == [*map(_clock, cut), None], (name, column)
        assert texts["u"] == micros["u"] == [*map(_clock, nanos), None], name


def test_types_follow_the_choice_and_the_zone_at_every_depth(tmp_path: Path) -> None:
    table = _table(tmp_path, _NARROW)
    for name, call in _CALLS.items():
        for form in ("ns", "us", "text"):
            schema = call(table, timestamps=form).schema
            plain = pa.string() if form == "text" else pa.timestamp(form)
            zoned = pa.string() if form == "text" else pa.timestamp(form, "UTC")
            assert [schema.field(column).type for column in ("t", "t8", "l", "l7")] == [plain, plain, zoned, zoned], name
            assert schema.field("u").type == pa.timestamp("us"), name
            assert [member.type for member in schema.field("r").type] == [plain, zoned], name
            assert schema.field("a").type.value_type == schema.field("m").type.item_type.value_type == plain, name
        assert call(table).schema == call(table, timestamps="ns").schema, name


def test_nanoseconds_are_refused_with_the_argument_only_outside_their_range(tmp_path: Path) -> None:
    narrow, wide = _table(tmp_path / "narrow", _NARROW), _table(tmp_path / "wide", _WIDE)
    for name, call in _CALLS.items():
        exact = call(narrow).column("t").cast(pa.int64()).to_pylist()
        assert exact == [*_NARROW, None], name
        with pytest.raises(UnsupportedFeatureError, match=r"column 't'.* 2261.*timestamps='us'.*timestamps='text'"):
            call(wide)
            pytest.fail(name)
    with pytest.raises(UnsupportedFeatureError, match="timestamps='us'"):
        wide.to_pandas()
    assert wide.to_arrow(columns=["k", "u"]).num_rows == len(_WIDE) + 1


def test_pandas_gets_texts_and_microseconds(tmp_path: Path) -> None:
    table = _table(tmp_path, _WIDE)
    assert sorted(table.to_pandas(columns=["t"], timestamps="text")["t"].dropna()) == sorted(map(_text, _WIDE))
    assert str(table.to_pandas(columns=["t"], timestamps="us")["t"].dtype) == "datetime64[us]"


def test_years_beyond_pythons_calendar_are_texts_that_sort_by_number(tmp_path: Path) -> None:
    plain = LocalTable(tmp_path, "k INT NOT NULL, t TIMESTAMP(9)", ("k",))
    times = times_of_nanos([_LAST + 1, _FIRST - 1])
    plain.write_columns(pa.table({"k": pa.array([0, 1], pa.int32()), "t": times}))
    found = Table.for_path(str(plain.root)).to_arrow(timestamps="text").sort_by("k")
    assert found.column("t").to_pylist() == ["10000-01-01 00:00:00.000000000", "0000-12-31 23:59:59.999999999"]


@pytest.mark.parametrize("wrong", ["ms", "NS", "", None, 9, ["ns"], pa.timestamp("us")], ids=str)
def test_another_choice_is_refused_by_each_call(tmp_path: Path, wrong: Any) -> None:
    table = _table(tmp_path, (0,))
    for name, call in {**_CALLS, "to_pandas": lambda table, **more: table.to_pandas(**more)}.items():
        with pytest.raises(InvalidInputError, match=r"timestamps: expected 'ns', 'us' or 'text'"):
            call(table, timestamps=wrong)
            pytest.fail(name)
