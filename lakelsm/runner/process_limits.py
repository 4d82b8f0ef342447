"""How many cores and how much memory this process may use: what the machine has, less what its control group allows."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

#: Where Linux mounts control groups. A container sees its own limits at the top.
_GROUPS = Path("/sys/fs/cgroup")


def usable_cores(groups: Path = _GROUPS) -> int:
    """The cores that this process may keep busy, at least one."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # No such group, or 'max' instead of a quota.
        quota, period = (groups / "cpu.max").read_text().split()
        cores = min(cores, int(quota) // int(period))
    return max(cores, 1)


def usable_memory(groups: Path = _GROUPS) -> int:
    """Bytes of the machine's memory, or of the control group's limit where that is less."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in (groups / "memory.max", groups / "memory" / "memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            memory = min(memory, int(limit.read_text()))
    return memory
