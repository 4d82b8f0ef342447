"""An error as plain values of a result."""

from __future__ import annotations

import json
import pickle

import pytest

from lakelsm.errors import StorageError, VectorsChangedError
from lakelsm.results.failure import Failure, error_text, error_values


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StorageError("the disk\n is full"), "the disk is full"),
        (StorageError(""), "StorageError"),
        (MemoryError(), "MemoryError"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (Mute(), "Mute"),
        (ValueError("x" * 5000), "ValueError: " + "x" * 2000 + " …"),
    ],
)
def test_an_error_always_has_a_text_of_one_line(error: Exception, text: str) -> None:
    assert error_text(error) == text


def test_a_failure_is_plain_values() -> None:
    failure = Failure.of(VectorsChangedError("others", ("a",)), "the compaction", "Again.")
    expected = {
        "step": "the compaction", "error": "VectorsChangedError", "kind": "retry", "text": "others", "remedy": "Again."
    }
    assert json.loads(json.dumps(failure.as_dict())) == expected
    assert pickle.loads(pickle.dumps(failure)) == failure and str(failure) == "others"
    assert error_values(failure) == {
        "error": "others", "error_class": "VectorsChangedError", "error_kind": "retry", "remedy": "Again."
    }
    assert set(error_values(None).values()) == {None}
