"""A file that moves up is the same file on another level."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakelsm.errors import InvalidInputError
from tests.format.manifest.manifest_samples import file, varied_entries


@pytest.mark.parametrize("level", [2, 1])
def test_an_upgrade_needs_a_higher_level(level: int) -> None:
    with pytest.raises(InvalidInputError, match="level 2"):
        file(level=2).upgraded(level)


def test_an_upgrade_changes_only_the_level() -> None:
    before = replace(varied_entries(1, 4)[0].file, level=6)
    after = before.upgraded(9)
    assert (after.level, before.level) == (9, 6)
    assert replace(after, level=6) == before


def test_metadata_is_equal_without_the_footers_checksum() -> None:
    assert file(footer_checksum=1) == file(footer_checksum=2)
    assert file(row_count=1) != file(row_count=2)
