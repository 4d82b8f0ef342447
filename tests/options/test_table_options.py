"""TableOptions: defaults, derived defaults, fallback keys, and errors with key and value."""

from __future__ import annotations

import pickle

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options import ATTRIBUTES, OPTIONS, ChangelogProducer, MergeEngine, TableOptions
from lakelsm.options.accepted_keys import ALWAYS_ON_KEYS, TUNING_KEYS, WAITING_KEYS
from lakelsm.options.other_keys import UNBUILT_KEYS


def test_attributes_are_named_like_their_keys() -> None:
    assert all(name == o.key.replace(".", "_").replace("-", "_") for name, o in ATTRIBUTES.items())


def test_each_key_is_declared_once() -> None:
    fallbacks = [key for declaration in OPTIONS.values() for key in declaration.fallback_keys]
    waiting = [key for keys in WAITING_KEYS.values() for key in keys]
    keys = [*OPTIONS, *fallbacks, *waiting, *TUNING_KEYS, *ALWAYS_ON_KEYS, *UNBUILT_KEYS]
    assert len(OPTIONS) == len(ATTRIBUTES)
    assert sorted(keys) == sorted(set(keys))


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


def test_fallback_keys_are_read() -> None:
    assert TableOptions.parse({"write.compaction-skip": "true"}).write_only
    assert TableOptions.parse({"deduplicate.ignore-delete": "TRUE"}).ignore_delete


def test_options_can_be_pickled_for_tasks() -> None:
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
