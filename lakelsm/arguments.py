"""What users pass, checked before any work: one InvalidInputError that names argument, value and remedy.

Each check returns the value as the engine takes it. ``optional`` lets None pass, for an argument that may be left out.
The meaning of a value (does the table have this column, this tag?) is checked where it is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, timedelta
from itertools import islice
from numbers import Integral, Real
from typing import TypeVar

from lakelsm.errors import InvalidInputError
from lakelsm.moment import MOMENT_FORMS, Age, Moment, is_wrong_time
from lakelsm.options.option_values import parse_duration, parse_size
from lakelsm.options.other_keys import holds_secret
from lakelsm.secret_values import ShownRepr

Given = TypeVar("Given")

#: Ids of snapshots, numbers of bytes: whole numbers of 64 bits.
_MOST = 2**63 - 1
#: The greatest bucket number: 32 bits in Paimon's files.
_LAST_BUCKET = 2**31 - 1
#: So many buckets may be named one by one.
_MAX_BUCKETS = 1_000_000
#: The least memory of a task: below it a batch of each of a few runs no longer fits.
_LEAST_TASK_MEMORY = 16 << 20
#: Bytes of the longest name that file systems take.
LONGEST_NAME = 255
#: How the names of tags' files begin (docs/format.md 1).
TAG_PREFIX = "tag-"
#: Precedes the name of a tag in a text that could also be a time.
TAG_POINT = "tag:"
#: How the names of consumers' files begin.
CONSUMER_PREFIX = "consumer-"
#: How the names of branches' directories begin (docs/format.md 1).
BRANCH_PREFIX = "branch-"
#: Bytes of the longest location: systems take 4,096 with all that lies below it.
_LONGEST_LOCATION = 2048
#: The longest age: 10,000 years.
_MAX_SECONDS = 10_000 * 366 * 86_400
#: How users may get TIMESTAMP(7..9) in Arrow: as nanoseconds (the years 1678 to 2261 alone), microseconds, or text.
TIMESTAMP_FORMS = ("ns", "us", "text")
#: What an age must be, and one that may be a moment.
_AGE = "a duration such as '7 days' of at most 10,000 years, a timedelta or seconds"
_MOMENT = f"or {MOMENT_FORMS}"
_SHOWN = 80


def wrong_argument(argument: str, value: object, wanted: str) -> InvalidInputError:
    """The error of a wrong argument; ``wanted`` completes 'it must be'."""
    return InvalidInputError(f"{argument} is {_shown(value)}; it must be {wanted}.")


def checked_text(argument: str, value: Given, wanted: str, *, optional: bool = False, blank: bool = False) -> Given:
    """A text of characters that UTF-8 has; ``blank`` allows an empty one."""
    if value is None and optional:
        return value
    if not isinstance(value, str):
        raise wrong_argument(argument, value, wanted)
    if not blank and not value.strip():
        raise wrong_argument(argument, value, f"{wanted}, not blank")
    if not _is_encodable(value):
        raise wrong_argument(argument, value, f"{wanted}; half of a surrogate pair is no character")
    return value


def checked_name(argument: str, value: Given, wanted: str, *, optional: bool = False) -> Given:
    """A text that names something: without the NUL character."""
    if isinstance(value, str) and "\0" in value:
        raise wrong_argument(argument, value, f"{wanted}, without the NUL character")
    return checked_text(argument, value, wanted, optional=optional)


def checked_choice(argument: str, value: Given, choices: Sequence[str]) -> Given:
    """One of some words, or None."""
    if value is None or (isinstance(value, str) and value in choices):  # Other values may not even be compared.
        return value
    raise wrong_argument(argument, value, f"one of {', '.join(map(repr, choices))}, or left out")


def checked_cast(value: object) -> bool:
    """Whether a write casts values that fit ('safe'), or takes only types whose every value fits ('strict')."""
    if isinstance(value, str) and value in ("safe", "strict"):  # Other values may not even be compared.
        return value == "safe"
    raise wrong_argument("cast", value, "'safe' or 'strict'")


def checked_timestamps(argument: str, value: object) -> str:
    """A form of TIMESTAMP(7..9) in Arrow."""
    if isinstance(value, str) and value in TIMESTAMP_FORMS:  # Other values may not even be compared.
        return value
    raise wrong_argument(argument, value, f"one of {', '.join(map(repr, TIMESTAMP_FORMS))}")


def checked_file_name(argument: str, value: Given, wanted: str, *, affix: str = "", optional: bool = False) -> Given:
    """A name of one file or directory, which storage writes with ``affix`` before or after it."""
    checked_name(argument, value, wanted, optional=optional)
    if isinstance(value, str):
        if "/" in value:
            raise wrong_argument(argument, value, f"{wanted}, without a slash")
        if any(character < " " or "\x7f" <= character <= "\x9f" for character in value):
            raise wrong_argument(argument, value, f"{wanted}, without control characters")
        if len((value + affix).encode()) > LONGEST_NAME:
            raise wrong_argument(argument, value, f"{wanted}, of at most {LONGEST_NAME - len(affix)} bytes")
    return value


def checked_location(argument: str, value: str) -> str:
    """A path or URI whose parts are names; the storage judges its scheme."""
    wanted = "a text, the path or URI of a directory, such as '/data/warehouse'"
    checked_name(argument, value, wanted)
    if any(len(part.encode()) > LONGEST_NAME for part in value.split("/")):
        raise wrong_argument(argument, value, f"a path whose parts have at most {LONGEST_NAME} bytes")
    if len(value.encode()) > _LONGEST_LOCATION:
        raise wrong_argument(argument, value, f"a path of at most {_LONGEST_LOCATION} bytes")
    return value


def checked_flag(argument: str, value: bool) -> bool:
    """True or False, and nothing that is merely true."""
    if not isinstance(value, bool):
        raise wrong_argument(argument, value, "True or False")
    return value


def checked_number(argument: str, value: object, *, least: int, most: int = _MOST) -> int:
    """A whole number within bounds; numpy's are made Python's."""
    number = _integer(value)
    if number is None or number < least:
        raise wrong_argument(argument, value, f"a whole number of {least} or more")
    if number > most:
        raise wrong_argument(argument, value, f"a whole number of {most} at most")
    return number


def checked_snapshot_id(argument: str, value: int | None) -> int | None:
    """The id of a snapshot: they begin at 1."""
    return None if value is None else checked_number(argument, value, least=1)


def checked_condition(value: Given, *, optional: bool = True) -> Given:
    """The ``where`` of a read, a delete or a compaction."""
    wanted = "an SQL condition as text, such as \"dt = '2025-01-31'\""
    if optional:
        wanted += " (leave it out for all rows)"
    return checked_text("where", value, wanted, optional=optional)


def checked_assignments(value: object) -> dict[str, str]:
    """The ``set`` of an update: SQL expressions by column, at least one."""
    wanted = "columns with SQL expressions as text, such as {'n': 'n + 1', 'status': \"'done'\"}"
    if not isinstance(value, Mapping) or not value:
        raise wrong_argument("set", value, wanted)
    one = "an SQL expression as text, such as '5', \"'a text'\" or 'NULL'"
    names = [checked_name("set", name, wanted) for name in value]
    return {name: checked_text(f"set[{_shown(name)}]", value[name], one) for name in names}


def checked_names(argument: str, value: object) -> list[str]:
    """A list of column names."""
    if isinstance(value, str):
        raise wrong_argument(argument, value, f"a list: write [{_shown(value)}]")
    wanted = "a list of column names, such as ['id']"
    if not isinstance(value, Sequence) or isinstance(value, (bytes, bytearray)):
        raise wrong_argument(argument, value, wanted)
    return [checked_name(argument, each, wanted) for each in value]


def checked_projection(columns: Sequence[str] | None) -> list[str] | None:
    """The columns of a read, each once; None for all."""
    if columns is None:
        return None
    names = checked_names("columns", columns)
    if not names or len(set(names)) < len(names):
        raise wrong_argument("columns", columns, "a list of column names, each once (leave it out for all)")
    return names


def option_texts(argument: str, value: object) -> dict[str, str]:
    """Options by key, their values as text: True is 'true' and 4 is '4', as Java prints them."""
    if value is None:
        return {}
    wanted = "a mapping of option keys to values, such as {'bucket': '4'}"
    of_store = argument == "storage_options"
    if not isinstance(value, Mapping):
        if of_store:  # By its type alone: it may be the options in another form, with secrets among them.
            raise InvalidInputError(f"{argument} is a {type_name(type(value))}; it must be {wanted}.")
        raise wrong_argument(argument, value, wanted)
    return {
        checked_name(argument, key, wanted): option_text(key, each, hidden=of_store) for key, each in value.items()
    }


def option_text(key: str, value: object, *, hidden: bool = False) -> str:
    """The value of one option as text. Errors do not show it where it is ``hidden``, or its key is that of a secret."""
    if isinstance(value, bool):
        return str(value).lower()
    if hidden or holds_secret(key):
        return _hidden_text(key, value)
    number = _integer(value)
    if number is not None:
        return str(checked_number(f"option '{key}'", number, least=-_MOST - 1))
    if isinstance(value, Real) and math.isfinite(value):
        return str(float(value))
    checked: str = checked_text(f"option '{key}'", value, "a text, such as '4'", blank=True)  # type: ignore[assignment]
    return checked


def _hidden_text(key: str, value: object) -> str:
    number = _integer(value)
    if number is not None and -_MOST - 1 <= number <= _MOST:
        return str(number)
    if isinstance(value, float) and math.isfinite(value):
        return str(value)
    if isinstance(value, str) and _is_encodable(value):
        return str(value)
    what = "a text with half of a surrogate pair" if isinstance(value, str) else f"a {type_name(type(value))}"
    raise InvalidInputError(f"option '{key}' is {what} (not shown: it may be a secret); it must be a text, such as '4'.")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_time(argument: str, value: object) -> Moment | None:
    """A point in time: a datetime or the text of one (see `lakelsm.moment`)."""
    if value is None:
        return None
    if isinstance(value, (str, datetime)) and value == value:  # pandas' NaT is a datetime.
        try:
            return Moment.of_text(value) if isinstance(value, str) else Moment.of_datetime(value)
        except ValueError:
            pass
    raise wrong_argument(argument, value, MOMENT_FORMS)


def checked_point(
    argument: str, value: object, *, least: int, is_tag: Callable[[str], bool]
) -> int | str | Moment | None:
    """A snapshot: its id, the name of a tag (as text), or a point in time.

    A text is a time if it parses as one, else the name of a tag, which 'tag:' may precede. ``is_tag`` returns whether a
    tag exists. Raises InvalidInputError for the text of a time that is the name of a tag too.
    """
    if isinstance(value, str):
        if value.startswith(TAG_POINT):
            return checked_tag(argument, value[len(TAG_POINT) :], optional=False)
        try:
            moment = Moment.of_text(value)
        except ValueError:
            if "/" in value and is_wrong_time(value):  # Of an unknown zone.
                raise wrong_argument(argument, value, f"{MOMENT_FORMS}, a snapshot id, or the name of a tag") from None
            return checked_tag(argument, value, optional=False)
        if is_tag(value):
            raise InvalidInputError(
                f"{argument} is {_shown(value)}, a time and the name of a tag: write {_shown(TAG_POINT + value)} for the "
                "tag, or pass the time as a datetime."
            )
        return moment
    if value is None or isinstance(value, Moment):
        return value
    if isinstance(value, datetime):
        return checked_time(argument, value)
    if _integer(value) is None:
        raise wrong_argument(argument, value, "a snapshot id, a time, or the name of a tag such as 'tag:release-1'")
    return checked_number(argument, value, least=least)


def checked_tag(argument: str, value: Given, *, optional: bool = True) -> Given:
    """The name of a tag."""
    return checked_file_name(argument, value, "the name of a tag as text", affix=TAG_PREFIX, optional=optional)


def checked_branch(argument: str, value: Given, *, new: bool = False) -> Given:
    """The name of a branch; that of a ``new`` one follows Paimon's rules, and names that a catalog opens."""
    wanted = "the name of a branch as text"
    checked_file_name(argument, value, wanted, affix=BRANCH_PREFIX)
    if new and value == "main":
        raise wrong_argument(argument, value, f"{wanted}; 'main' is the table itself")
    if new and isinstance(value, str) and (value.isdecimal() or "$" in value):
        raise wrong_argument(argument, value, f"{wanted}, not of digits alone and without '$'")
    return value


def checked_consumer(argument: str, value: Given, *, optional: bool = True) -> Given:
    """The id of a consumer."""
    return checked_file_name(argument, value, "the id of a consumer as text", affix=CONSUMER_PREFIX, optional=optional)


def checked_buckets(argument: str, value: object) -> frozenset[int] | None:
    """Numbers of buckets, or their text with commas; None for None."""
    if value is None:
        return None
    wanted = "bucket numbers, such as [0, 1] or '0,1' (leave it out for all)"
    given = _numbers_of(value) if isinstance(value, str) else value
    if not isinstance(given, (Sequence, Set)) or isinstance(given, (bytes, bytearray)):
        raise wrong_argument(argument, value, wanted)
    members = list(islice(given, _MAX_BUCKETS + 1))
    if not 0 < len(members) <= _MAX_BUCKETS:
        raise wrong_argument(argument, value, wanted)
    numbers = [_integer(member) for member in members]
    known = frozenset(number for number in numbers if number is not None and 0 <= number <= _LAST_BUCKET)
    if not known.issuperset(numbers):
        raise wrong_argument(argument, value, wanted)
    return known


def checked_seconds(argument: str, value: float | str | None) -> float | None:
    """A length of time in seconds; text may have a unit, as options have."""
    if value is None:
        return None
    found = _seconds_of(value)
    if not 0 <= found < math.inf:
        raise wrong_argument(argument, value, "seconds, or a duration such as '30 min'")
    return found


def checked_age(argument: str, value: object, *, moments: bool = True) -> Age | None:
    """An age: a timedelta, seconds, a duration such as '7 days', or with ``moments`` a datetime or its text."""
    if value is None:
        return None
    seconds = value.total_seconds() if isinstance(value, timedelta) and value == value else _seconds_of(value)
    if 0 <= seconds < _MAX_SECONDS:
        return Age(seconds=seconds)
    if moments and math.isnan(seconds) and isinstance(value, (str, datetime)):
        try:
            return Age(moment=checked_time(argument, value))
        except InvalidInputError:
            pass
    raise wrong_argument(argument, value, f"{_AGE}, {_MOMENT}" if moments else _AGE)


def checked_task_memory(argument: str, value: int | str) -> int:
    """Bytes that a task may take; text may have a unit, as options have."""
    wanted = f"bytes or a size of at least {_LEAST_TASK_MEMORY >> 20}mb, such as '256mb'"
    try:
        found = parse_size(value) if isinstance(value, str) else value
        return checked_number(argument, found, least=_LEAST_TASK_MEMORY)
    except ValueError:
        raise wrong_argument(argument, value, wanted) from None


def _numbers_of(value: str) -> list[int]:
    """The numbers of a text with commas; none where it is no such text."""
    try:
        return [int(part) for part in value.split(",")]
    except ValueError:
        return []


def _seconds_of(value: object) -> float:
    """A number or a duration in seconds; NaN where it is neither."""
    try:
        if isinstance(value, str):
            return parse_duration(value) / 1000 if value.strip()[-1:].isalpha() else float(value)
        return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except (ValueError, OverflowError):
        return math.nan


def _integer(value: object) -> int | None:
    """A whole number of Python's or numpy's kinds; None for all else, True and False too."""
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def _shown(value: object) -> str:
    """A value for a message: plain ones as they are written, cut where long, others by their type."""
    if value is None or isinstance(value, (str, bytes, bool, int, float, date, list, tuple, dict, set, frozenset)):
        try:
            return _Shortened.repr(value)
        except ValueError:  # of a whole number with thousands of digits
            pass
    return f"a {type_name(type(value))}"


def type_name(kind: type) -> str:
    """The name of a type for a message."""
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


_Shortened = ShownRepr(_SHOWN)
