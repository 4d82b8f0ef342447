"""The identity of an entry, which a DELETE must repeat to cancel an ADD."""

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
def test_each_part_of_the_identity_distinguishes_entries(change: dict[str, Any]) -> None:
    assert entry(**change).identity != entry().identity


@pytest.mark.parametrize("change", [{"kind": FileKind.DELETE}, {"total_buckets": 8}, {"row_count": 1}])
def test_other_fields_do_not_change_the_identity(change: dict[str, Any]) -> None:
    assert entry(**change).identity == entry().identity
