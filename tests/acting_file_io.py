"""Storage that runs a function before or after an operation: another process acts there, or this process stops."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lakelsm.storage import LocalFileIO

ALWAYS = 1 << 30
Act = Callable[[], object]


class ActingFileIO(LocalFileIO):
    """Runs ``act`` before (or ``after``) operations of the given names whose path matches ``path``, a regular expression.

    It starts with matching operation ``first`` (0, 1, …) and stops after ``times`` operations. Temporary files do not
    count. Copies share the count.
    """

    def __init__(
        self, act: Act, *operations: str, path: str = "", first: int = 0, times: int = 1, after: bool = False
    ) -> None:
        self.act, self.operations, self.path = act, operations, re.compile(path)
        self.first, self.times, self.after = first, times, after
        self.seen = [0]

    @property
    def acted(self) -> bool:
        """Return whether ``act`` ran."""
        return self.seen[0] > self.first

    def is_due(self, operation: str, path: object) -> bool:
        if operation not in self.operations or "/." in str(path) or not self.path.search(str(path)):
            return False
        self.seen[0] += 1
        return self.first < self.seen[0] <= self.first + self.times


def _acting(name: str) -> Callable[..., Any]:
    real = getattr(LocalFileIO, name)

    def operation(self: ActingFileIO, *arguments: Any, **named: Any) -> Any:
        is_due = self.is_due(name, arguments[0] if arguments else "")
        if is_due and not self.after:
            self.act()
        result = real(self, *arguments, **named)
        if is_due and self.after:
            self.act()
        return result

    return operation


for _name in (
    *("read", "list", "exists", "filesystem"),
    *("write", "create_if_absent", "delete", "delete_files", "delete_dir"),
):
    setattr(ActingFileIO, _name, _acting(_name))


def raising(error: BaseException) -> Act:
    """Return an act that raises an error, which stops the operation."""

    def act() -> None:
        raise error

    return act
