"""Builders of files for planning tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lakelsm.lsm.levels import FileRange


def file(low: Any, high: Any, *, level: int = 0, size: int = 1, index: int = 0, **more: Any) -> FileRange:
    values: dict[str, Any] = {"row_count": 1, "min_seq": index, "max_seq": index, "delete_rows": 0} | more
    return FileRange(
        index=index, level=level, size=size, min_key=low, max_key=high, name=f"f{index}", **values
    )


@st.composite
def file_lists(draw: st.DrawFn, max_size: int = 20) -> list[FileRange]:
    """Level-0 files with small random key ranges."""
    ranges = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=max_size))
    return [file(low, low + width, index=i, size=width + 1) for i, (low, width) in enumerate(ranges)]
