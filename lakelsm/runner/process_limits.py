"""The cores and memory that this process may use: those of the machine, or the limits of its control group."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

#: The directory in which Linux mounts control groups. A container sees its own limits at this path.
_GROUPS = Path("/sys/fs/cgroup")


def usable_cores(groups: Path = _GROUPS) -> int:
    """Return the number of cores that this process may use, at least 1."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # No such group, or 'max' instead of a quota.
        quota, period = (groups / "cpu.max").read_text().split()
        cores = min(cores, int(quota) // int(period))
    return max(cores, 1)


def usable_memory(groups: Path = _GROUPS) -> int:
    """Return the memory of the machine in bytes, or the limit of the control group if it is lower."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in (groups / "memory.max", groups / "memory" / "memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            memory = min(memory, int(limit.read_text()))
    return memory
