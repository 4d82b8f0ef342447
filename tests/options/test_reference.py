"""docs/options.md is generated from the declarations."""

from __future__ import annotations

from pathlib import Path

from lakelsm.options import OPTIONS
from lakelsm.options.accepted_keys import ACCEPTED_KEYS
from lakelsm.options.field_options import FIELD_OPTIONS
from lakelsm.options.option_enums import Feature
from lakelsm.options.other_keys import FEATURE_KEYS, UNBUILT_KEYS, UPKEEP_KEYS, WRITE_KEYS
from lakelsm.options.reference import options_reference, waiting_keys

_REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "options.md"


def test_the_reference_equals_the_declarations() -> None:
    assert _REFERENCE.read_text() == options_reference(), (
        "run: python -m lakelsm.options.reference > docs/options.md"
    )


def test_every_key_is_in_the_reference() -> None:
    text = options_reference()
    keys = [*OPTIONS, *FIELD_OPTIONS, *ACCEPTED_KEYS, *FEATURE_KEYS, *WRITE_KEYS, *UPKEEP_KEYS, *UNBUILT_KEYS]
    keys += [key for declared in OPTIONS.values() for key in declared.fallback_keys]
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_defaults_are_shown_as_a_user_writes_them() -> None:
    rows = [line.split(" | ") for line in options_reference().splitlines() if line.startswith("| `")]
    cells = {row[0].strip("| `"): row[2] for row in rows}
    assert cells["merge-engine"] == "deduplicate"
    assert cells["write-only"] == "false"
    assert cells["target-file-size"] == "128 mb"
    assert cells["snapshot.time-retained"] == "1 h"
    assert cells["sequence.field"] == "none"
    assert cells["bucket"] == "-1"


def test_the_keys_of_a_missing_feature_are_one_list_of_declared_and_other_keys() -> None:
    assert "lookup-wait" in waiting_keys(Feature.CONCURRENT_COMPACTION)  # declared
    streaming = waiting_keys(Feature.STREAMING)
    assert "scan.max-splits-per-task" in streaming  # not declared
    assert streaming == sorted(streaming)
    for feature in Feature:
        (line,) = (line for line in options_reference().splitlines() if line.startswith(f"| {feature.value} |"))
        assert waiting_keys(feature)
        assert all(f"`{key}`" in line for key in waiting_keys(feature))
