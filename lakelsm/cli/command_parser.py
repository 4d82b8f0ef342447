"""argparse with full option names only, unwrapped help, and errors without secrets."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NoReturn

from lakelsm.secret_values import REDACTED, is_secret, shown_uri

_NAME = re.compile(r"-{0,2}[\w.-]+")


class CommandParser(ArgumentParser):
    """The parser of the command, and of each verb."""

    def __init__(self, *, prog: str, description: str, epilog: str) -> None:
        self._words: Sequence[str] = ()
        #: The verb of a group that runs if the command line names none.
        self.default_verb: str | None = None
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
        """Parse like argparse, but refuse '--option=--', which argparse would read as an empty list."""
        words = self._words = sys.argv[1:] if args is None else list(args)
        if self.default_verb is not None and not any(_is_verb_or_help(word) for word in words[:1]):
            words = [self.default_verb, *words]
        for word in takewhile("--".__ne__, words):
            if word.startswith("--") and word.endswith("=--"):
                self.error(f"argument {word.removesuffix('=--')}: '--' is not a value")
        return super().parse_known_args(words, namespace)

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> Namespace:
        """Parse like argparse, but show the usage of the verb, not of the command, for an unknown argument."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser: ArgumentParser = getattr(found, "parser", self)
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found

    def error(self, message: str) -> NoReturn:
        """Print an error without secrets, and exit with 2."""
        for word in self._words:
            message = message.replace(word, shown_uri(word))
        for secret in _secrets(self._words):
            message = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", REDACTED, message)
        super().error(message)


def _is_verb_or_help(word: str) -> bool:
    return not word.startswith("-") or word in ("-h", "--help")


def _secrets(words: Sequence[str]) -> Iterator[str]:
    """Yield values that may be secrets: values of keys with such names, as KEY=VALUE or as the next word."""
    for word, following in zip(words, [*words[1:], ""]):
        key, _, value = word.removeprefix("--").partition("=")
        while value:
            if is_secret(key):
                yield value
                break
            key, _, value = value.partition("=")
        if _NAME.fullmatch(word) and is_secret(word) and following and not following.startswith("-"):
            yield following
