"""Processes that race with others or are killed: forked from a server that has loaded what they need.

An interpreter of its own takes each of them a second of CPU to begin.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from multiprocessing.util import get_temp_dir

#: Longer than anything that such a process does, on a busy machine.
PATIENCE = 300.0
#: What the server loads: the modules whose functions run in processes.
_LOADED = [
    "tests.test_crash_safety",
    "tests.commit.test_commit_faults",
    "tests.compact.test_killed_and_racing_compactions",
    "tests.lookup.full.test_full_cache",
    "tests.lookup.partial.test_partial_cache",
    "tests.lookup.store.damaged_store",
    "tests.storage.test_local",
]

CONTEXT = multiprocessing.get_context("forkserver")
get_temp_dir()  # Chosen before a test has temporary files elsewhere: the path of the server's socket must be short.


def started(work: Callable[..., object], *arguments: object) -> BaseProcess:
    """A process that calls ``work`` with the arguments."""
    CONTEXT.set_forkserver_preload(_LOADED)
    process = CONTEXT.Process(target=work, args=arguments)
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    """Wait for its end: the exit code, None where it never ends."""
    process.join(PATIENCE)
    return process.exitcode
