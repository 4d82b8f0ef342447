"""Messages of the Python API in terms of the command line: arguments become flags, and calls become verbs."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Mapping

#: Flags whose name differs from that of the Python argument.
_OTHER_NAMES = {"storage_options": "--storage-option", "location": "--path"}
#: Calls in messages, and the commands that replace them.
_CALLS = (
    (r"\b(?:[Tt]able\.)?compact\(full=True\)", "lakelsm compact --full"),
    (r"\b[Tt]able\.compact\(\)", "lakelsm compact"),
    (r"\b[Tt]able\.(?:maintenance\.)?remove_orphans\(\)", "lakelsm orphans"),
)
#: Namespaces of a table, and the verb group of each.
_GROUPS = {"tags": "tag", "branches": "branch", "consumers": "consumers"}
_GROUP_CALL = re.compile(r"(?<![\w.])(?:[Tt]able\.)?(tags|branches|consumers)\.([a-z]+(?:_[a-z]+)*)(?:\(([^()]*)\))?")
#: Advice that does not apply on the command line.
_OPENING = re.compile(r"open it with table\('[^']*'\), or ")
#: A whole word outside of quotes: quoted text comes from the user.
_WORD = r"(?<![\w.'\"`-]){name}(?![\w'\"`(])"


def in_flags(text: str, parser: ArgumentParser) -> str:
    """Return a message with the arguments that it names replaced by the flags of a parser.

    'force=True' becomes '--force', and 'older_than: …' becomes '--older-than: …'.
    """
    for call, verb in _CALLS:
        text = re.sub(call, verb, text)
    text = _OPENING.sub("", _GROUP_CALL.sub(_verb, text))
    flags = _flags(parser)
    if "--table" in flags.values() and not any(each.dest == "name" for each in parser._actions):
        text = re.sub(r"(^|: )name(?=:| is\b)", r"\1--table", text)
    for name, flag in flags.items():
        word = _WORD.format(name=re.escape(name))
        text = re.sub(rf"{word}=True\b", flag, text)
        text = re.sub(rf"{word}=False\b", f"no {flag}", text)
        text = re.sub(rf"{word}='([\w-]+)'", rf"{flag} \1", text)
        text = re.sub(rf"(^|: ){word}(?=:| (?:is|must be)\b)", rf"\1{flag}", text)
        if "_" in name:  # A name with an underscore is not an English word.
            text = re.sub(word, flag, text)
    return text


def _verb(call: re.Match[str]) -> str:
    """Return the verb of a call: table.tags.delete('a') becomes lakelsm tag delete a."""
    group, verb, given = call.groups()
    return " ".join(filter(None, ["lakelsm", _GROUPS[group], verb.replace("_", "-"), (given or "").strip("'")]))


def _flags(parser: ArgumentParser) -> Mapping[str, str]:
    """Return the flags of a parser by the names of the Python arguments."""
    return {**_OTHER_NAMES, **{each.dest: each.option_strings[-1] for each in parser._actions if each.option_strings}}
