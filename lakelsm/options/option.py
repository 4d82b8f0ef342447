"""The declaration of a table option: key, kind, default, bounds, description and parser."""

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
#: The maximum number of characters of a value in an error.
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class Kind:
    """A kind of value: its name in docs/options.md and the parser of its text."""

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

#: 100 years in milliseconds, the maximum of waits and of calendar periods.
CENTURY = 36_525 * 86_400_000


def enum_kind(enum: type[Enum]) -> Kind:
    """Return the kind of an option whose values are those of an enum, in any case."""
    members = {str(member.value): member for member in enum}

    def parse(text: str) -> Enum:
        member = members.get(text.strip().lower())
        if member is None:
            raise ValueError(f"{text!r} is not one of {', '.join(members)}")
        return member

    return Kind(" / ".join(members), parse)


def choice_kind(*values: str) -> Kind:
    """Return the kind of an option whose values are some texts, in any case; they are parsed to lower case."""

    def parse(text: str) -> str:
        lowered = text.strip().lower()
        if lowered not in values:
            raise ValueError(f"{text!r} is not one of {', '.join(values)}")
        return lowered

    return Kind(" / ".join(values), parse)


def codec_kind(*written: str) -> Kind:
    """Return the kind of an option that names a compression; ``written`` are those that lakelsm writes.

    Other texts are accepted, because reads do not depend on them; `lakelsm.schema.write_codecs` refuses them for writes.
    """
    return Kind(" / ".join(written), lambda text: text.strip().lower())


@dataclass(frozen=True)
class Option:
    """One option; `low` and `high` are inclusive.

    `immutable`: it cannot change once the table has data. Other options can change if no file depends on them.
    `per_call`: a single write can set it. An option that is not `per_call` applies to the whole table: it decides where
    rows are stored or what they mean, on which all writers and readers must agree, or it has no effect on a write.
    `for_writes` (by default as `per_call`): reads ignore its value, also an invalid one.
    `acts_from`: the table stores the option, and it takes effect when the feature is built.
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
        """Return the typed value of `text`. Raises InvalidInputError with the key, the value and what is allowed."""
        try:
            value = self.kind.parse(text)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                unit = " ms" if self.kind is DURATION else ""
                if self.low is not None and value < self.low:
                    raise ValueError(f"{text!r} is less than {self.low:.15g}{unit}")
                if self.high is not None and value > self.high:
                    raise ValueError(f"{text!r} is more than {self.high:.15g}{unit}")
        except ValueError as reason:
            shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
            message = str(reason).replace(repr(text), repr(shown))
            raise InvalidInputError(f"option '{key or self.key}': {message}.") from None
        return value

    def text_in(self, raw: Mapping[str, str]) -> tuple[str, str] | None:
        """Return the key and the text of this option in a table's options, or None; fallback keys follow its own."""
        for key in (self.key, *self.fallback_keys):
            if key in raw:
                return key, raw[key]
        return None


def _as_field(make: Callable[_Arguments, Option]) -> Callable[_Arguments, Any]:
    def declare(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Any:
        declaration = make(*args, **kwargs)
        return field(default=declaration.default, metadata={"option": declaration})

    return declare


#: Declares a dataclass field for an `Option`, with its arguments. TableOptions consists of such fields.
option = _as_field(Option)
