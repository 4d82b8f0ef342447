"""Arguments of the Python API in a message become flags of the command line."""

from __future__ import annotations

from argparse import ArgumentParser

import pytest

from lakelsm.cli.flags import in_flags


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("give an hour, or force=True where nobody writes.", "give an hour, or --force where nobody writes."),
        ("call compact(full=True), then change it", "call lakelsm compact --full, then change it"),
        ("leave force=False", "leave no --force"),
        ("pass older_than='1-d', or where=x", "pass --older-than 1-d, or where=x"),
        ("older_than: 'x' is not a duration", "--older-than: 'x' is not a duration"),
        ("Table d.t: where: column 'x' does not exist", "Table d.t: --where: column 'x' does not exist"),
        ("where must be on partition columns", "--where must be on partition columns"),
        ("Table d.t: where: expected a text, got 'force=True'", "Table d.t: --where: expected a text, got 'force=True'"),
        ("it must not be less than retain_last, which is 2", "it must not be less than --retain-last, which is 2"),
        ("storage_options has the key 'a'", "--storage-option has the key 'a'"),
        ("location is '/x\\0'", "--path is '/x\\0'"),
        ("the column 'retain_last' and x.retain_last", "the column 'retain_last' and x.retain_last"),
        ("a rule that says where is best", "a rule that says where is best"),
        ("call expire_snapshots(retain_last)", "call expire_snapshots(--retain-last)"),
        ("enforce=True and name is 'a'", "enforce=True and name is 'a'"),
    ],
)
def test_a_message_names_flags(message: str, shown: str) -> None:
    parser = ArgumentParser()
    parser.add_argument("name")
    for flag in ("--force", "--older-than", "--where", "--retain-last"):
        parser.add_argument(flag)
    assert in_flags(message, parser) == shown


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("name: expected 'database.table', got 'bad'", "--table: expected 'database.table', got 'bad'"),
        ("name: 'bad' is not 'database.table'", "--table: 'bad' is not 'database.table'"),
        ("Table d.t: name is 'a'", "Table d.t: --table is 'a'"),
        ("open it with table('d.t'), or pass if_not_exists=True.", "pass --if-not-exists."),
        ("delete it with table.tags.delete('a-1').", "delete it with lakelsm tag delete a-1."),
        ("table.branches.fast_forward, or list", "lakelsm branch fast-forward, or list"),
        ("(table.consumers.record), or table.tags.list().", "(lakelsm consumers record), or lakelsm tag list."),
        ("choose another name, or call tags.delete.", "choose another name, or call lakelsm tag delete."),
        ("my_table.tags.delete('a')", "my_table.tags.delete('a')"),
    ],
)
def test_a_message_names_verbs_and_the_flag_of_the_table(message: str, shown: str) -> None:
    parser = ArgumentParser()
    parser.add_argument("--table")
    parser.add_argument("--if-not-exists", action="store_true")
    assert in_flags(message, parser) == shown
