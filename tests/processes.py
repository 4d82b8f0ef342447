"""Processes that race with others or are killed. They are forked from a server that has loaded all needed modules.

A new interpreter for each of them would take a second of CPU to start.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from multiprocessing.util import get_temp_dir

#: Longer than any work of such a process on a busy machine, in seconds.
PATIENCE = 300.0
#: Modules that the server loads: their functions run in the processes.
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
    """Start a process that calls ``work`` with the arguments."""
    CONTEXT.set_forkserver_preload(_LOADED)
    process = CONTEXT.Process(target=work, args=arguments)
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    """Wait for the end of a process. Return its exit code, or None if it does not end."""
    process.join(PATIENCE)
    return process.exitcode
