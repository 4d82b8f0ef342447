"""Checks of the arguments of public calls, before any work. A wrong argument raises InvalidInputError.

The message names the argument, its value and the remedy. Each check returns the value in the form that the engine uses.
``optional`` accepts None, for an argument that may be left out. Checks that need the table (whether it has a column or a
tag) are made where the table is open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, timedelta
from itertools import islice
from numbers import Integral, Real
from typing import TypeVar

from lakelsm.errors import InvalidInputError
from lakelsm.moment import MOMENT_FORMS, Age, Moment, is_invalid_time
from lakelsm.options.option_values import parse_duration, parse_size
from lakelsm.options.other_keys import holds_secret
from lakelsm.secret_values import ShownRepr

Given = TypeVar("Given")

#: Snapshot ids and sizes in bytes are signed integers of 64 bits.
_MAX_INTEGER = 2**63 - 1
#: The highest bucket number: Paimon's files have 32 bits for it.
_MAX_BUCKET_NUMBER = 2**31 - 1
#: The maximum number of buckets in one argument.
_MAX_BUCKETS = 1_000_000
#: The minimum memory of a task: with less, one batch of each of a few runs does not fit.
_MIN_TASK_MEMORY = 16 << 20
#: The maximum length of a file name, in bytes, on common file systems.
LONGEST_NAME = 255
#: Prefix of the file names of tags (docs/format.md 1).
TAG_PREFIX = "tag-"
#: Precedes the name of a tag in a text that could also be a time.
TAG_POINT = "tag:"
#: Prefix of the file names of consumers.
CONSUMER_PREFIX = "consumer-"
#: Prefix of the directory names of branches (docs/format.md 1).
BRANCH_PREFIX = "branch-"
#: The maximum length of a location, in bytes: systems allow 4,096 for a whole path, with the files below the location.
_LONGEST_LOCATION = 2048
#: The longest age: 10,000 years.
_MAX_SECONDS = 10_000 * 366 * 86_400
#: Forms of TIMESTAMP(7..9) in Arrow: nanoseconds (only the years 1678 to 2261), microseconds, or text.
TIMESTAMP_FORMS = ("ns", "us", "text")
#: Remedies of a wrong age or point in time.
_USE_DURATION = "Use, for example, '7 days', '12 h', a timedelta or seconds (at most 10,000 years)."
_USE_AGE = f"Use, for example, '7 days', a timedelta, seconds, {MOMENT_FORMS}."
_USE_TIME = f"Use {MOMENT_FORMS}."
#: The maximum number of characters of a value in a message.
_MAX_SHOWN = 80


def wrong_argument(argument: str, value: object, wanted: str, remedy: str = "") -> InvalidInputError:
    """Return the error of a wrong argument: 'argument: expected <wanted>, got <value>. <remedy>'.

    An empty ``argument`` is left out: argparse itself names the flag.
    """
    return invalid_argument(argument, f"expected {wanted}, got {_shown(value)}.", remedy)


def invalid_argument(argument: str, fault: str, remedy: str = "") -> InvalidInputError:
    """Return the error of a wrong argument: '<argument>: <fault> <remedy>'; both end with a full stop."""
    return InvalidInputError(" ".join(filter(None, [f"{argument}:" if argument else "", fault, remedy])))


def checked_text(argument: str, value: Given, wanted: str, *, optional: bool = False, blank: bool = False) -> Given:
    """Check a text that UTF-8 can encode; ``blank`` allows an empty one."""
    if value is None and optional:
        return value
    if not isinstance(value, str):
        raise wrong_argument(argument, value, wanted)
    if not blank and not value.strip():
        raise wrong_argument(argument, value, f"{wanted}, not blank")
    if not _is_encodable(value):
        raise wrong_argument(argument, value, wanted, "Half of a surrogate pair is not a character.")
    return value


def checked_name(argument: str, value: Given, wanted: str, *, optional: bool = False) -> Given:
    """Check a text without the NUL character."""
    if isinstance(value, str) and "\0" in value:
        raise wrong_argument(argument, value, f"{wanted}, without the NUL character")
    return checked_text(argument, value, wanted, optional=optional)


def checked_choice(argument: str, value: Given, choices: Sequence[str], *, optional: bool = True) -> Given:
    """Check that a value is one of ``choices``."""
    # The comparison of a value of another type may raise.
    if (value is None and optional) or (isinstance(value, str) and value in choices):
        return value
    raise wrong_argument(argument, value, f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}")


def checked_cast(value: object) -> bool:
    """Return True for 'safe' (a write casts values that fit), False for 'strict' (every value of the type must fit)."""
    return checked_choice("cast", value, ("safe", "strict"), optional=False) == "safe"


def checked_timestamps(argument: str, value: object) -> str:
    """Check the name of a form of TIMESTAMP(7..9) in Arrow."""
    return str(checked_choice(argument, value, TIMESTAMP_FORMS, optional=False))


def checked_file_name(argument: str, value: Given, wanted: str, *, affix: str = "", optional: bool = False) -> Given:
    """Check the name of a file or directory, which storage writes with ``affix`` before or after it."""
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
    """Check a path or URI, except its scheme, which the storage checks."""
    wanted = "the path or URI of a directory as text, such as '/data/warehouse'"
    checked_name(argument, value, wanted)
    if any(len(part.encode()) > LONGEST_NAME for part in value.split("/")):
        raise wrong_argument(argument, value, f"a path whose parts have at most {LONGEST_NAME} bytes")
    if len(value.encode()) > _LONGEST_LOCATION:
        raise wrong_argument(argument, value, f"a path of at most {_LONGEST_LOCATION} bytes")
    return value


def checked_flag(argument: str, value: bool) -> bool:
    """Check a bool; a value that is only truthy is refused."""
    if not isinstance(value, bool):
        raise wrong_argument(argument, value, "True or False")
    return value


def checked_number(argument: str, value: object, *, min_value: int, max_value: int = _MAX_INTEGER) -> int:
    """Check a whole number, of Python or numpy, and return it as an int."""
    number = _integer(value)
    if number is None:
        raise wrong_argument(argument, value, "a whole number")
    if number < min_value:
        raise invalid_argument(argument, f"{_shown(value)} is less than {min_value}.")
    if number > max_value:
        raise invalid_argument(argument, f"{_shown(value)} is more than {max_value}.")
    return number


def checked_snapshot_id(argument: str, value: int | None) -> int | None:
    """Check the id of a snapshot, from 1."""
    return None if value is None else checked_number(argument, value, min_value=1)


def checked_condition(value: Given, *, optional: bool = True) -> Given:
    """Check the ``where`` of a read, a delete or a compaction."""
    return checked_text("where", value, "an SQL condition as text, such as \"dt = '2025-01-31'\"", optional=optional)


def checked_assignments(value: object) -> dict[str, str]:
    """Check the ``set`` of an update: a mapping of columns to SQL expressions, not empty."""
    wanted = "a mapping of columns to SQL expressions, such as {'n': 'n + 1', 'status': \"'done'\"}"
    if not isinstance(value, Mapping) or not value:
        raise wrong_argument("set", value, wanted)
    one = "an SQL expression as text, such as '5', \"'a text'\" or 'NULL'"
    names = [checked_name("set", name, wanted) for name in value]
    return {name: checked_text(f"set[{_shown(name)}]", value[name], one) for name in names}


def checked_names(argument: str, value: object, wanted: str = "a list of column names") -> list[str]:
    """Check a list of names, which ``wanted`` describes."""
    if isinstance(value, str):
        raise wrong_argument(argument, value, wanted, f"Write [{_shown(value)}].")
    if not isinstance(value, Sequence) or isinstance(value, (bytes, bytearray)):
        raise wrong_argument(argument, value, wanted)
    return [checked_name(argument, each, wanted) for each in value]


def checked_projection(columns: Sequence[str] | None) -> list[str] | None:
    """Check the columns of a read, each once; None means all."""
    if columns is None:
        return None
    names = checked_names("columns", columns)
    if not names or len(set(names)) < len(names):
        raise wrong_argument("columns", columns, "a list of column names, each once", "Leave it out for all columns.")
    return names


def option_texts(argument: str, value: object) -> dict[str, str]:
    """Return options with their values as text: True is 'true' and 4 is '4', as Java prints them."""
    if value is None:
        return {}
    wanted = "a mapping of option keys to values, such as {'bucket': '4'}"
    of_store = argument == "storage_options"
    if not isinstance(value, Mapping):
        if of_store:  # The value may hold secrets: the message shows only its type.
            raise invalid_argument(argument, f"expected {wanted}, got {_of_type(value)}.")
        raise wrong_argument(argument, value, wanted)
    return {
        checked_name(argument, key, wanted): option_text(key, each, hidden=of_store) for key, each in value.items()
    }


def option_text(key: str, value: object, *, hidden: bool = False) -> str:
    """Return the value of an option as text. Errors do not show it if ``hidden`` or if its key may be a secret's."""
    if isinstance(value, bool):
        return str(value).lower()
    if hidden or holds_secret(key):
        return _hidden_text(key, value)
    number = _integer(value)
    if number is not None:
        return str(checked_number(f"option '{key}'", number, min_value=-_MAX_INTEGER - 1))
    if isinstance(value, Real) and math.isfinite(value):
        return str(float(value))
    checked: str = checked_text(f"option '{key}'", value, "a text such as '4'", blank=True)  # type: ignore[assignment]
    return checked


def _hidden_text(key: str, value: object) -> str:
    number = _integer(value)
    if number is not None and -_MAX_INTEGER - 1 <= number <= _MAX_INTEGER:
        return str(number)
    if isinstance(value, float) and math.isfinite(value):
        return str(value)
    if isinstance(value, str) and _is_encodable(value):
        return str(value)
    what = "a text with half of a surrogate pair" if isinstance(value, str) else _of_type(value)
    raise invalid_argument(f"option '{key}'", f"expected a text such as '4', got {what} (not shown: it may be a secret).")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_time(argument: str, value: object) -> Moment | None:
    """Check a point in time: a datetime or its text (see `lakelsm.moment`)."""
    if value is None:
        return None
    if isinstance(value, (str, datetime)) and value == value:  # pandas' NaT is a datetime.
        try:
            return Moment.of_text(value) if isinstance(value, str) else Moment.of_datetime(value)
        except ValueError:
            pass
    raise invalid_argument(argument, f"{_shown(value)} is not a point in time.", _USE_TIME)


def checked_point(
    argument: str, value: object, *, min_value: int, is_tag: Callable[[str], bool]
) -> int | str | Moment | None:
    """Check what names a snapshot: its id, the name of a tag (as text), or a point in time.

    A text is a time if it parses as one, else the name of a tag; 'tag:' may precede a name. ``is_tag`` returns whether a
    tag exists. Raises InvalidInputError for a text that is both a time and the name of an existing tag.
    """
    if isinstance(value, str):
        if value.startswith(TAG_POINT):
            return checked_tag(argument, value[len(TAG_POINT) :], optional=False)
        try:
            moment = Moment.of_text(value)
        except ValueError:
            if "/" in value and is_invalid_time(value):  # The text has a time zone, which is unknown.
                raise invalid_argument(argument, f"the time zone of {_shown(value)} is unknown.", _USE_TIME) from None
            return checked_tag(argument, value, optional=False)
        if is_tag(value):
            remedy = f"Write {_shown(TAG_POINT + value)} for the tag, or pass the time as a datetime."
            raise invalid_argument(argument, f"{_shown(value)} is both a time and the name of a tag.", remedy)
        return moment
    if value is None or isinstance(value, Moment):
        return value
    if isinstance(value, datetime):
        return checked_time(argument, value)
    if _integer(value) is None:
        raise wrong_argument(argument, value, "a snapshot id, a time, or the name of a tag such as 'tag:release-1'")
    return checked_number(argument, value, min_value=min_value)


def checked_tag(argument: str, value: Given, *, optional: bool = True) -> Given:
    """Check the name of a tag."""
    return checked_file_name(argument, value, "the name of a tag as text", affix=TAG_PREFIX, optional=optional)


def checked_branch(argument: str, value: Given, *, new: bool = False) -> Given:
    """Check the name of a branch; the name of a ``new`` one must be valid in Paimon and in a catalog."""
    wanted = "the name of a branch as text"
    checked_file_name(argument, value, wanted, affix=BRANCH_PREFIX)
    if new and value == "main":
        raise wrong_argument(argument, value, wanted, "'main' is the table itself.")
    if new and isinstance(value, str) and (value.isdecimal() or "$" in value):
        raise wrong_argument(argument, value, f"{wanted}, not of digits alone and without '$'")
    return value


def checked_consumer(argument: str, value: Given, *, optional: bool = True) -> Given:
    """Check the id of a consumer."""
    return checked_file_name(argument, value, "the id of a consumer as text", affix=CONSUMER_PREFIX, optional=optional)


def checked_buckets(argument: str, value: object) -> frozenset[int] | None:
    """Check bucket numbers: a collection of them, or a text with commas between them."""
    if value is None:
        return None
    wanted = "bucket numbers, such as [0, 1] or '0,1'"
    given = _numbers_of(value) if isinstance(value, str) else value
    if not isinstance(given, (Sequence, Set)) or isinstance(given, (bytes, bytearray)):
        raise wrong_argument(argument, value, wanted)
    members = list(islice(given, _MAX_BUCKETS + 1))
    if not 0 < len(members) <= _MAX_BUCKETS:
        raise wrong_argument(argument, value, wanted)
    numbers = [_integer(member) for member in members]
    valid = frozenset(number for number in numbers if number is not None and 0 <= number <= _MAX_BUCKET_NUMBER)
    if not valid.issuperset(numbers):
        raise wrong_argument(argument, value, wanted)
    return valid


def checked_seconds(argument: str, value: float | str | None) -> float | None:
    """Check a duration and return its seconds; a text may have a unit, as in options."""
    if value is None:
        return None
    seconds = _seconds_of(value)
    if not 0 <= seconds < math.inf:
        raise invalid_argument(argument, f"{_shown(value)} is not a duration.", "Use, for example, '30 min' or seconds.")
    return seconds


def checked_age(argument: str, value: object, *, moments: bool = True) -> Age | None:
    """Check an age: a timedelta, seconds, a duration such as '7 days', or with ``moments`` a datetime or its text."""
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
    what = "a duration or a point in time" if moments else "a duration"
    raise invalid_argument(argument, f"{_shown(value)} is not {what}.", _USE_AGE if moments else _USE_DURATION)


def checked_task_memory(argument: str, value: int | str) -> int:
    """Check the memory of a task and return it in bytes; a text may have a unit, as in options."""
    wanted = f"bytes, or a size such as '256mb', of at least {_MIN_TASK_MEMORY >> 20}mb"
    try:
        size = parse_size(value) if isinstance(value, str) else value
        return checked_number(argument, size, min_value=_MIN_TASK_MEMORY)
    except ValueError:
        raise wrong_argument(argument, value, wanted) from None


def _numbers_of(value: str) -> list[int]:
    """Return the numbers of a text with commas; an empty list for another text."""
    try:
        return [int(part) for part in value.split(",")]
    except ValueError:
        return []


def _seconds_of(value: object) -> float:
    """Return a number or a duration in seconds, or NaN for another value."""
    try:
        if isinstance(value, str):
            return parse_duration(value) / 1000 if value.strip()[-1:].isalpha() else float(value)
        return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except (ValueError, OverflowError):
        return math.nan


def _integer(value: object) -> int | None:
    """Return a whole number of Python or numpy as an int; None for other values, also for True and False."""
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def _shown(value: object) -> str:
    """Return a value for a message: the repr of a plain value, shortened if it is long; else its type."""
    if value is None or isinstance(value, (str, bytes, bool, int, float, date, list, tuple, dict, set, frozenset)):
        try:
            return _Shortened.repr(value)
        except ValueError:  # Python refuses the text of an int with thousands of digits.
            pass
    return _of_type(value)


def _of_type(value: object) -> str:
    return f"an object of type {type_name(type(value))}"


def type_name(kind: type) -> str:
    """Return the name of a type for a message, without 'builtins'."""
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


_Shortened = ShownRepr(_MAX_SHOWN)
