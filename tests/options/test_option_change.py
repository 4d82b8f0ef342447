"""The options of an existing table that can change, and those that a single write can set."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options.option_change import check_option_change, check_option_of_call


@pytest.mark.parametrize(
    ("present", "key", "text", "allowed"),
    [
        ({}, "write-only", "true", True),
        ({"bucket": "4"}, "bucket", "8", True),
        ({"bucket": "4"}, "bucket", "-1", False),
        ({}, "bucket", "4", False),
        ({"bucket": "4"}, "bucket", None, False),
        ({}, "merge-engine", "deduplicate", True),
        ({}, "merge-engine", "aggregation", False),
        ({"rowkind.field": "k"}, "rowkind.field", None, False),
        ({"ignore-delete": "true"}, "ignore-delete", "false", False),
        ({"ignore-delete": "true"}, "ignore-delete", None, False),
        ({}, "ignore-delete", "true", True),
        ({"deletion-vectors.enabled": "true"}, "deletion-vectors.enabled", "false", True),
        ({}, "primary-key", "x", False),
        ({}, "a.key.of.another.engine", "x", True),
        ({"deduplicate.ignore-delete": "true"}, "ignore-delete", "false", False),
        ({"ignore-delete": "true"}, "deduplicate.ignore-delete", "false", False),
        ({"ignore-delete": "false"}, "ignore-delete", None, True),
        ({"ignore-update-before": "true"}, "ignore-update-before", None, False),
    ],
)
def test_only_options_that_may_change_can_change(
    present: dict[str, str], key: str, text: str | None, allowed: bool
) -> None:
    if allowed:
        check_option_change(present, key, text)
    else:
        with pytest.raises(InvalidInputError, match=key):
            check_option_change(present, key, text)


@pytest.mark.parametrize(
    ("present", "key", "text"), [({"bucket": "4"}, "bucket", " 4"), ({}, "merge-engine", "DEDUPLICATE")]
)
def test_the_current_value_in_another_notation_is_always_allowed(present: dict[str, str], key: str, text: str) -> None:
    check_option_change(present, key, text)
    check_option_of_call(present, key, text)


def test_a_fixed_option_is_refused_with_both_values() -> None:
    message = "option 'merge-engine' cannot change from its default to 'first-row' once the table has data"
    with pytest.raises(InvalidInputError, match=message):
        check_option_change({}, "merge-engine", "first-row")
    with pytest.raises(InvalidInputError, match=r"cannot change from 'k' to its default"):
        check_option_change({"rowkind.field": "k"}, "rowkind.field", None)


@pytest.mark.parametrize("engine", ["partial-update", " AGGREGATION "])
@pytest.mark.parametrize(("old", "new"), [(None, "lookup"), ("lookup", "none"), ("LOOKUP", None), ("input", "Lookup")])
def test_engines_that_combine_rows_cannot_switch_to_or_from_lookup(engine: str, old: str | None, new: str | None) -> None:
    present = {"merge-engine": engine, **({} if old is None else {"changelog-producer": old})}
    with pytest.raises(InvalidInputError, match=r"'changelog-producer' cannot change from .* merged twice"):
        check_option_change(present, "changelog-producer", new)
    check_option_change({**present, "force-lookup": "true"}, "changelog-producer", new)
    check_option_change({**present, "merge-engine": "deduplicate"}, "changelog-producer", new)


def test_a_changelog_producer_may_change_if_neither_is_lookup() -> None:
    check_option_change({"merge-engine": "aggregation"}, "changelog-producer", "full-compaction")
    check_option_change({"merge-engine": "aggregation", "changelog-producer": "input"}, "changelog-producer", None)


@pytest.mark.parametrize(
    ("key", "text"),
    [("target-file-size", "1 mb"), ("write-only", "true"), ("sequence.field", "v"), ("snapshot.time-retained", "2 h")],
)
def test_an_option_of_any_kind_may_be_removed(key: str, text: str) -> None:
    check_option_change({key: text}, key, None)


def test_a_single_write_can_set_options_of_its_files() -> None:
    for key, text in {"target-file-size": "1 mb", "fields.v.stats-mode": "none", "key.of.another": "x"}.items():
        check_option_of_call({}, key, text)


@pytest.mark.parametrize(
    "key",
    [
        "changelog-producer",
        "sequence.field",
        "deduplicate.ignore-delete",
        "fields.v.distinct",
        "fields.default-aggregate-function",
        "deletion-vectors.modifiable",
        "scan.tag-name",
        "streaming-read-overwrite",
        "disable-explicit-type-casting",
        "write-buffer-spillable",
        "consumer-id",
    ],
)
def test_a_single_write_cannot_set_options_of_the_table(key: str) -> None:
    text = "input" if key == "changelog-producer" else "true"
    message = rf"option '{key}' = '{text}' cannot be set for one call.*SetOption\('{key}'"
    with pytest.raises(InvalidInputError, match=message):
        check_option_of_call({}, key, text)
