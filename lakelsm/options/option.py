"""The declaration of one table option: key, kind, default, range, documentation, and how its text is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import Any, ParamSpec

from lakelsm.errors import InvalidInputError
from lakelsm.options.option_enums import Feature
from lakelsm.options.option_values import (
    parse_boolean,
    parse_double,
    parse_duration,
    parse_int,
    parse_long,
    parse_names,
    parse_periods,
    parse_size,
    parse_stats_mode,
    parse_text,
    parse_zone,
)

_Arguments = ParamSpec("_Arguments")


@dataclass(frozen=True)
class Kind:
    """A kind of value: its name in the reference and the parser of its text."""

    name: str
    parse: Callable[[str], object]


BOOLEAN = Kind("boolean", parse_boolean)
INT = Kind("int", parse_int)
LONG = Kind("long", parse_long)
DOUBLE = Kind("double", parse_double)
SIZE = Kind("size", parse_size)
DURATION = Kind("duration", parse_duration)
TEXT = Kind("text", parse_text)
NAMES = Kind("column names", parse_names)
ZONE = Kind("time zone", parse_zone)
PERIODS = Kind("periods", parse_periods)
STATS_MODE = Kind("statistics mode", parse_stats_mode)

#: In milliseconds: the longest that something waits, or that a period of the calendar is.
CENTURY = 36_525 * 86_400_000


def enum_kind(enum: type[Enum]) -> Kind:
    """The kind of an option whose values are an enum's, in any case."""
    members = {str(member.value): member for member in enum}

    def parse(text: str) -> Enum:
        member = members.get(text.strip().lower())
        if member is None:
            raise ValueError(f"it must be one of {', '.join(members)}")
        return member

    return Kind(" / ".join(members), parse)


def choice_kind(*values: str) -> Kind:
    """The kind of an option with a few permitted texts, in any case; parsed to lower case."""

    def parse(text: str) -> str:
        lowered = text.strip().lower()
        if lowered not in values:
            raise ValueError(f"it must be one of {', '.join(values)}")
        return lowered

    return Kind(" / ".join(values), parse)


def codec_kind(*written: str) -> Kind:
    """The kind of an option that names a compression; ``written`` are those that lakelsm can write.

    Any other text is taken as well, as readers need none of it: `lakelsm.schema.write_rules` refuses it for writes.
    """
    return Kind(" / ".join(written), lambda text: text.strip().lower())


@dataclass(frozen=True)
class Option:
    """One option; `low` and `high` are inclusive.

    `immutable` options cannot change once the table has data; others may change if no file depends on them. An option
    that is not `per_call` applies to the whole table: it decides where rows are stored or what they mean, on which all
    writers and readers must agree, or it has no effect on a write. An option with `acts_from` is stored in the table
    and takes effect when the feature is built. Reads ignore the value of an option that is `for_writes` (by default one
    that is `per_call`), and do not fail if it is invalid.
    """

    key: str
    kind: Kind
    default: object
    doc: str
    _: KW_ONLY
    default_text: str | None = None
    low: float | None = None
    high: float | None = None
    immutable: bool = False
    per_call: bool = True
    for_writes: bool | None = None
    fallback_keys: tuple[str, ...] = ()
    acts_from: Feature | None = None

    def __post_init__(self) -> None:
        per_call = self.per_call and not self.immutable and self.acts_from is None
        object.__setattr__(self, "per_call", per_call)
        object.__setattr__(self, "for_writes", per_call if self.for_writes is None else self.for_writes)

    def parse(self, text: str, key: str | None = None) -> object:
        """The typed value of `text`. Raises InvalidInputError naming key, value and what is allowed."""
        try:
            value = self.kind.parse(text)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                unit = " ms" if self.kind is DURATION else ""
                if self.low is not None and value < self.low:
                    raise ValueError(f"it must be at least {self.low:.15g}{unit}")
                if self.high is not None and value > self.high:
                    raise ValueError(f"it must be at most {self.high:.15g}{unit}")
        except ValueError as reason:
            raise InvalidInputError(f"option '{key or self.key}' cannot be '{text}': {reason}") from None
        return value

    def text_in(self, raw: Mapping[str, str]) -> tuple[str, str] | None:
        """(key used, text) of this option in a table's options, fallback keys included; None if absent."""
        for key in (self.key, *self.fallback_keys):
            if key in raw:
                return key, raw[key]
        return None


def _as_field(make: Callable[_Arguments, Option]) -> Callable[_Arguments, Any]:
    def declare(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Any:
        declaration = make(*args, **kwargs)
        return field(default=declaration.default, metadata={"option": declaration})

    return declare


#: A dataclass field that declares an `Option`, by its arguments; TableOptions is made of these: each is declared once.
option = _as_field(Option)
