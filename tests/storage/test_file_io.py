"""Temporary names of files before they are published."""

from __future__ import annotations

from lakelsm.storage.file_io import temporary_name


def test_temporary_names_begin_with_a_dot_and_are_never_too_long() -> None:
    assert temporary_name("snapshot-3", "u") == ".snapshot-3.u.tmp"
    longest = temporary_name("é" * 127, "u")
    assert longest.startswith(".é") and longest.endswith("é.u.tmp") and len(longest.encode()) in (254, 255)
