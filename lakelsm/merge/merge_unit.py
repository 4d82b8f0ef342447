"""The unit of a merge: the files of sorted runs, and the key range that a task merges."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lakelsm.format.data_file.file_check import ExpectedFile
from lakelsm.format.data_file.file_index_location import FileIndexLocation
from lakelsm.format.data_file.vector_location import VectorLocation

#: The cost of a byte that is read to look keys up, relative to one that is merged and written.
LOOK_UP_COST = 0.25

#: Values of the trimmed primary key, in the order of its columns.
Key = tuple[object, ...]


@dataclass(frozen=True)
class RunFile:
    """One data file of a run. ``path`` is its path in the file system; ``local``: it is a scratch file of this machine.

    ``expected`` is from the manifest entry (None for a scratch file, which has no entry). ``vector`` is the location of
    the deletion vector that masks rows of the file, ``index`` that of its indexes if they can exclude keys.
    ``extra_files`` are the names of further files in its directory that belong to it.
    """

    path: str
    _: KW_ONLY
    schema_id: int
    row_count: int
    file_size: int
    local: bool = False
    level: int = 0
    expected: ExpectedFile | None = field(default=None, compare=False)
    vector: VectorLocation | None = None
    index: FileIndexLocation | None = None
    extra_files: tuple[str, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        """The last component of the path."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class MergeUnit:
    """Files whose rows are merged together: ``runs`` are ordered from the oldest, the files of each by key.

    Only rows with ``lower`` <= key < ``upper`` belong to the unit (None: no bound). ``looked_up`` are runs below the
    output of a compaction: they do not change, and the merge looks up keys of the unit in them, which are all within
    ``reach`` (both ends inclusive). The manifest entries prove two properties of ``runs``. ``has_only_adds``: no row is
    a retraction. ``is_newest_last``: each row has a larger sequence number than all rows of earlier runs.
    """

    runs: tuple[tuple[RunFile, ...], ...]
    _: KW_ONLY
    lower: Key | None = None
    upper: Key | None = None
    looked_up: tuple[tuple[RunFile, ...], ...] = ()
    reach: tuple[Key, Key] | None = None
    has_only_adds: bool = False
    is_newest_last: bool = False

    @property
    def all_runs(self) -> tuple[tuple[RunFile, ...], ...]:
        """The runs that are looked up, then the runs that are merged."""
        return (*self.looked_up, *self.runs)

    @cached_property
    def files(self) -> tuple[RunFile, ...]:
        """The files of `all_runs`; `FILE_NUMBER` of a row is an index into them."""
        return tuple(file for run in self.all_runs for file in run)

    @cached_property
    def levels(self) -> npt.NDArray[np.int64]:
        """The level of each of ``files``."""
        return np.array([file.level for file in self.files], dtype=np.int64)

    @property
    def cost(self) -> int:
        """The bytes of the files that are merged, plus a fraction of those that are looked up."""
        looked_up = sum(file.file_size for run in self.looked_up for file in run)
        return sum(file.file_size for run in self.runs for file in run) + int(looked_up * LOOK_UP_COST)


@dataclass(frozen=True)
class KeySearch:
    """Find the keys of some rows of ``source``, given as row indexes, in the files ``targets`` of the same bucket."""

    bucket: tuple[bytes, int]
    source: RunFile
    rows: BitMap
    targets: tuple[RunFile, ...]
