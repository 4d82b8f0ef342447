"""Names of files that are not published yet."""

from __future__ import annotations

from lakelsm.storage.temporary_names import temporary_name


def test_temporary_names_begin_with_a_dot() -> None:
    assert temporary_name("snapshot-3", "u") == ".snapshot-3.u.tmp"
