"""argparse as the command uses it: whole names of options, help as it is written, and no secret in an error."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from itertools import takewhile
from typing import NoReturn

#: A storage option that may be a secret, with its value, as a mistyped command line shows it.
_SECRET = re.compile(r"([\w.-]*(?:key|secret|token|password|credential)[\w.-]*=)[^\s'\"]+", re.IGNORECASE)


class CommandParser(ArgumentParser):
    """The parser of the command, and of each of its verbs."""

    def __init__(self, *, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """As argparse does, which would take '--option=--' for a list of no value."""
        words = sys.argv[1:] if args is None else list(args)
        for word in takewhile("--".__ne__, words):
            if word.startswith("--") and word.endswith("=--"):
                self.error(f"argument {word.removesuffix('=--')}: '--' alone is no value")
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        """Tell what is wrong with the command line, and exit with 2."""
        super().error(_SECRET.sub(r"\1…", message))
