"""argparse as the command uses it: whole names of options, help as it is written, and no secret in an error."""

from __future__ import annotations

import re
from argparse import ArgumentParser, RawDescriptionHelpFormatter
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

    def error(self, message: str) -> NoReturn:
        """Tell what is wrong with the command line, and exit with 2."""
        super().error(_SECRET.sub(r"\1…", message))
