"""What a DELETE must repeat to take back an ADD."""

from __future__ import annotations

from typing import Any

import pytest

from lakelsm.format.manifest.entry import FileKind
from tests.format.manifest.manifest_samples import entry, int_row


@pytest.mark.parametrize(
    "change",
    [
        {"partition": int_row(1)},
        {"bucket": 1},
        {"level": 1},
        {"name": "data-2.parquet"},
        {"extra_files": ("x",)},
        {"embedded_index": b"i"},
        {"external_path": "file:/x"},
    ],
)
def test_each_part_of_the_identity_tells_two_entries_apart(change: dict[str, Any]) -> None:
    assert entry(**change).identity != entry().identity


@pytest.mark.parametrize("change", [{"kind": FileKind.DELETE}, {"total_buckets": 8}, {"row_count": 1}])
def test_what_is_no_part_of_the_identity_does_not(change: dict[str, Any]) -> None:
    assert entry(**change).identity == entry().identity
