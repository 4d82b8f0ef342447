"""PySpark's daemon for the tests, with the modules of its workers loaded: a worker of Spark's own takes a second of CPU.

A worker ends after each failed task and after a minute without a task, so a run of the tests starts hundreds. Spark
runs ``python -m tests.worker_daemon`` (see tests/spark_session.py).
"""

from __future__ import annotations

import gc
import os
import sys

# Spark puts zip files of its modules before those of the environment. They would be compiled again at each start, and
# their directories read again for each task.
sys.path[:] = [path for path in sys.path if not path.endswith(".zip")]
sys.path_importer_cache.clear()
# When a worker is forked, no thread may run except that of Arrow's allocator, which supports forks.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pandas  # noqa: E402, F401
import pyspark.worker  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

import lakelsm.frames.spark_engine  # noqa: E402, F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # The garbage collector of a worker then does not copy the pages of these modules.
    manager()
