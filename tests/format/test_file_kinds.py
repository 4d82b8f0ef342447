"""Every name that lakelsm writes has its kind."""

from __future__ import annotations

import re

import pytest

from lakelsm.format.file_kinds import NAME_PATTERNS, DirectoryRole, StoredKind
from lakelsm.format.file_names import CommitFileNames, FileNames, file_index_name
from lakelsm.storage.file_io import temporary_name

UUID = "65889ab4-7925-4c92-b2c9-a1cac0f7ae08"
COMMIT, TASK = CommitFileNames(UUID), FileNames(UUID)


@pytest.mark.parametrize(
    ("role", "name", "kind"),
    [
        (DirectoryRole.MANIFEST, COMMIT.manifest(), "manifest"),
        (DirectoryRole.MANIFEST, COMMIT.manifest_list(), "manifest-list"),
        (DirectoryRole.MANIFEST, COMMIT.index_manifest(), "index-manifest"),
        (DirectoryRole.INDEX, COMMIT.index(), "index"),
        (DirectoryRole.BUCKET, TASK.next("data-"), "data"),
        (DirectoryRole.BUCKET, TASK.next("changelog-"), "changelog"),
        (DirectoryRole.BUCKET, file_index_name(TASK.next("data-")), "file-index"),
        (DirectoryRole.OTHER, temporary_name("snapshot-12", UUID), "temporary"),
        (DirectoryRole.STATISTICS, temporary_name("stat-1", UUID), "temporary"),
    ],
)
def test_written_names_have_their_kind(role: DirectoryRole, name: str, kind: str) -> None:
    found = [each for each, pattern in NAME_PATTERNS[role].items() if re.fullmatch(pattern, name)]
    assert str(found[-1]) == kind == found[-1]


def test_temporary_files_have_their_kind_in_every_directory() -> None:
    assert all(StoredKind.TEMPORARY in patterns for patterns in NAME_PATTERNS.values())
