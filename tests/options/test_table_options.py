"""TableOptions: defaults, derived defaults, alternative keys, and errors that name key and value."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options import ATTRIBUTES, OPTIONS, ChangelogProducer, MergeEngine, TableOptions
from lakelsm.options.option_change import check_option_change
from lakelsm.options.other_keys import HARMLESS_KEYS, UNBUILT_KEYS
from lakelsm.options.reference import options_reference

_REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "options.md"


def test_attributes_are_named_like_their_keys() -> None:
    assert all(name == o.key.replace(".", "_").replace("-", "_") for name, o in ATTRIBUTES.items())


def test_each_key_is_declared_once() -> None:
    fallbacks = [key for declaration in OPTIONS.values() for key in declaration.fallback_keys]
    keys = [*OPTIONS, *fallbacks, *HARMLESS_KEYS, *UNBUILT_KEYS]
    assert len(OPTIONS) == len(ATTRIBUTES)
    assert sorted(keys) == sorted(set(keys))


def test_the_reference_equals_the_declarations() -> None:
    assert _REFERENCE.read_text() == options_reference(), (
        "run: python -m lakelsm.options.reference > docs/options.md"
    )


def test_defaults_are_paimons() -> None:
    options = TableOptions.parse({})
    assert (options.bucket, options.merge_engine, options.changelog_producer) == (
        -1,
        MergeEngine.DEDUPLICATE,
        ChangelogProducer.NONE,
    )
    assert (options.num_sorted_run_compaction_trigger, options.num_sorted_run_stop_trigger) == (5, 8)
    assert (options.num_levels, options.target_file_size) == (6, 128 << 20)
    assert (options.commit_max_retries, options.commit_min_retry_wait, options.commit_max_retry_wait) == (
        10,
        10,
        10_000,
    )
    assert options.explicit == frozenset()


def test_levels_and_stop_trigger_follow_the_compaction_trigger() -> None:
    options = TableOptions.parse({"num-sorted-run.compaction-trigger": "10"})
    assert (options.num_sorted_run_stop_trigger, options.num_levels) == (13, 11)
    given = TableOptions.parse({"num-sorted-run.stop-trigger": "2", "num-levels": "3"})
    assert (given.num_sorted_run_stop_trigger, given.num_levels) == (5, 3)


def test_alternative_keys_are_read() -> None:
    assert TableOptions.parse({"write.compaction-skip": "true"}).write_only
    assert TableOptions.parse({"deduplicate.ignore-delete": "TRUE"}).ignore_delete


def test_column_options_are_grouped_by_column() -> None:
    options = TableOptions.parse({"fields.a,b.sequence-group": "c", "fields.c.stats-mode": "none"})
    assert options.field_options == {"a,b": {"sequence-group": "c"}, "c": {"stats-mode": "none"}}


def test_options_can_be_sent_to_tasks() -> None:
    options = TableOptions.parse({"bucket": "4", "fields.a.stats-mode": "none"})
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("bucket", "four"),
        ("merge-engine", "dedupe"),
        ("target-file-size", "0"),
        ("num-levels", "1"),
        ("commit.timeout", "soon"),
        ("write.compaction-skip", "yes"),
        ("file.compression.zstd-level", "23"),
        ("fields.a.stats-mode", "half"),
        ("compaction.small-file-ratio", "nan"),
    ],
)
def test_a_bad_value_is_refused_naming_key_and_value(key: str, text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        TableOptions.parse({key: text})
    assert f"'{key}'" in str(caught.value)
    assert f"'{text}'" in str(caught.value)


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
        ({"deletion-vectors.enabled": "true"}, "deletion-vectors.enabled", "false", False),
        (
            {"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"},
            "deletion-vectors.enabled",
            "false",
            True,
        ),
        ({}, "primary-key", "x", False),
        ({}, "a.key.of.another.engine", "x", True),
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
