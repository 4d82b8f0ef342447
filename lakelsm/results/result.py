"""The base classes of results, which define their plain values, text and HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from lakelsm.text_table import html_table

#: Maximum length of one value in the text of a result, in characters.
_MAX_TEXT = 80


@dataclass(frozen=True, repr=False)
class Result:
    """A frozen value. Its text is one line, without fields that have their default."""

    def as_dict(self) -> dict[str, object]:
        """Return the fields as plain values for a report: results as dicts, times as ISO texts, durations in seconds."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in self._texts())})"

    def _repr_html_(self) -> str:
        """Return the fields that differ from their default as an HTML table, for notebooks."""
        return html_table(self._texts(), caption=type(self).__name__)

    def _texts(self) -> list[tuple[str, str]]:
        """Return name and text of each field that differs from its default."""
        return [(name, _text(value)) for name, value in changed_fields(self).items()]


@dataclass(frozen=True, repr=False)
class OperationResult(Result, ABC):
    """The result of an operation that may change a table."""

    @property
    @abstractmethod
    def changed(self) -> bool:
        """True if there was anything to do."""

    @property
    def outcome(self) -> str:
        """The outcome: 'done', 'nothing' (there was nothing to do), 'planned' (a dry run), or 'deadline'."""
        return outcome_of(
            changed=self.changed, dry_run=getattr(self, "dry_run", False), complete=getattr(self, "complete", True)
        )


def outcome_of(*, changed: bool, dry_run: bool, complete: bool = True) -> str:
    """Return the outcome of an operation without an error. ``complete`` is False if the deadline ended it."""
    if not complete:
        return "deadline"
    if not changed:
        return "nothing"
    return "planned" if dry_run else "done"


def changed_fields(result: Result) -> dict[str, Any]:
    """Return the fields of a result that differ from their default, by name."""
    values = ((field, getattr(result, field.name)) for field in fields(result))
    return {field.name: value for field, value in values if value != _default(field)}


def sums(first: Result, second: Result) -> dict[str, Any]:
    """Return the sums of the number and tuple fields of two results of one class, by field name."""
    pairs = ((field.name, getattr(first, field.name), getattr(second, field.name)) for field in fields(first))
    return {name: one + two for name, one, two in pairs if _adds_up(one) and _adds_up(two)}


def _adds_up(value: object) -> bool:
    return isinstance(value, (int, float, tuple)) and not isinstance(value, bool)


def _default(field: Field[object]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _text(value: object) -> str:
    plain = _plain(value) if isinstance(value, (datetime, timedelta, Enum)) else value
    text = repr(round(plain, 3) if isinstance(plain, float) else plain)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def _plain(value: object) -> object:
    """Return a value as JSON types."""
    if isinstance(value, Result):
        return value.as_dict()
    if isinstance(value, tuple):
        return tuple(_plain(each) for each in value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.value if isinstance(value, Enum) else value
