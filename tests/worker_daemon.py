"""PySpark's daemon for the tests, with the modules of its workers loaded: a worker of Spark's own takes a second of CPU.

A worker ends after each failed task and after a minute without a task, so a run of the tests starts hundreds. Spark
runs ``python -m tests.worker_daemon`` (see tests/spark_session.py).
"""

from __future__ import annotations

import gc
import os

# When a worker is forked, no thread may run except that of Arrow's allocator, which supports forks.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pandas  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import lakelsm.frames.spark_engine  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # The garbage collector of a worker then does not copy the pages of these modules.
    manager()
