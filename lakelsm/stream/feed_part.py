"""The work of a batch of a stream, in parts that tasks read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lakelsm.format.snapshot import Snapshot
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.plan.changelog_plan import DifferenceUnit


@dataclass(frozen=True)
class LoadedRows:
    """Rows of a snapshot that the stream starts with: a file that is read unchanged, or files that are merged."""

    snapshot: Snapshot
    unit: RunFile | MergeUnit


@dataclass(frozen=True)
class FileChanges:
    """A file with changes of a snapshot: a changelog file, or a data file that an append added."""

    snapshot: Snapshot
    file: RunFile


@dataclass(frozen=True)
class OverwriteChanges:
    """Files in which the state before an overwrite differs from the one after it, ``snapshot``."""

    snapshot: Snapshot
    before: Snapshot | None
    unit: DifferenceUnit


FeedUnit: TypeAlias = LoadedRows | FileChanges | OverwriteChanges


@dataclass(frozen=True)
class FeedPart:
    """The work of one task: units of some buckets in the order of the snapshots. No other part has changes of them.

    ``files``, ``size`` (bytes) and ``rows`` are those of the files.
    """

    units: tuple[FeedUnit, ...]
    files: int
    size: int
    rows: int
