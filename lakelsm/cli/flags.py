"""Messages of the Python methods in the words of a command line: their arguments as its flags."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Mapping

#: Arguments that the command line has under another name.
_OTHERWISE = {"storage_options": "--storage-option", "location": "--path"}
#: Calls that have a verb.
_CALLS = (
    (r"\b(?:[Tt]able\.)?compact\(full=True\)", "lakelsm compact --full"),
    (r"\b[Tt]able\.compact\(\)", "lakelsm compact"),
    (r"\b[Tt]able\.(?:maintenance\.)?remove_orphans\(\)", "lakelsm orphans"),
)
#: A whole word that does not stand in quotes, where it is a user's.
_WORD = r"(?<![\w.'\"`-]){name}(?![\w'\"`(])"


def in_flags(text: str, parser: ArgumentParser) -> str:
    """A message with the flags of a parser for the arguments that it names.

    'force=True' becomes '--force', and 'older_than is …' becomes '--older-than is …'.
    """
    for call, verb in _CALLS:
        text = re.sub(call, verb, text)
    for name, flag in _flags(parser).items():
        word = _WORD.format(name=re.escape(name))
        text = re.sub(rf"{word}=True\b", flag, text)
        text = re.sub(rf"{word}=False\b", f"no {flag}", text)
        text = re.sub(rf"{word}='([\w-]+)'", rf"{flag} \1", text)
        text = re.sub(rf"(^|: ){word}(?= is\b)", rf"\1{flag}", text)
        if "_" in name:  # No other word is like it.
            text = re.sub(word, flag, text)
    return text


def _flags(parser: ArgumentParser) -> Mapping[str, str]:
    """The flag by the name of the Python argument."""
    return {**_OTHERWISE, **{each.dest: each.option_strings[-1] for each in parser._actions if each.option_strings}}
