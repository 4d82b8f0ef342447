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
#: A call of a namespace that is a group of verbs.
_GROUPS = {"tags": "tag", "branches": "branch", "consumers": "consumers"}
_GROUP_CALL = re.compile(r"(?<![\w.])(?:[Tt]able\.)?(tags|branches|consumers)\.([a-z]+(?:_[a-z]+)*)(?:\(([^()]*)\))?")
#: A call that the command line does not need.
_OPENING = re.compile(r"open it with table\('[^']*'\), or ")
#: A whole word that does not stand in quotes, where it is a user's.
_WORD = r"(?<![\w.'\"`-]){name}(?![\w'\"`(])"


def in_flags(text: str, parser: ArgumentParser) -> str:
    """A message with the flags of a parser for the arguments that it names.

    'force=True' becomes '--force', and 'older_than is …' becomes '--older-than is …'.
    """
    for call, verb in _CALLS:
        text = re.sub(call, verb, text)
    text = _OPENING.sub("", _GROUP_CALL.sub(_verb, text))
    flags = _flags(parser)
    if "--table" in flags.values() and not any(each.dest == "name" for each in parser._actions):
        text = re.sub(r"(^|: )name(?= is\b)", r"\1--table", text)
    for name, flag in flags.items():
        word = _WORD.format(name=re.escape(name))
        text = re.sub(rf"{word}=True\b", flag, text)
        text = re.sub(rf"{word}=False\b", f"no {flag}", text)
        text = re.sub(rf"{word}='([\w-]+)'", rf"{flag} \1", text)
        text = re.sub(rf"(^|: ){word}(?= (?:is|must be)\b)", rf"\1{flag}", text)
        if "_" in name:  # No other word is like it.
            text = re.sub(word, flag, text)
    return text


def _verb(call: re.Match[str]) -> str:
    """A call of a namespace as a verb: table.tags.delete('a') is lakelsm tag delete a."""
    group, verb, given = call.groups()
    return " ".join(filter(None, ["lakelsm", _GROUPS[group], verb.replace("_", "-"), (given or "").strip("'")]))


def _flags(parser: ArgumentParser) -> Mapping[str, str]:
    """The flag by the name of the Python argument."""
    return {**_OTHERWISE, **{each.dest: each.option_strings[-1] for each in parser._actions if each.option_strings}}
