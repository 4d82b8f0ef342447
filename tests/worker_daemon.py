"""PySpark's daemon for the tests, which has loaded what its workers need: a worker of Spark's own takes a second of CPU.

A worker ends with each task that fails and after a minute without one, so that a run of the tests starts hundreds. Spark
runs ``python -m tests.worker_daemon`` (see tests/spark_session.py).
"""

from __future__ import annotations

import gc
import os

# No thread but Arrow's allocator's, which knows of forks, may run when a worker is forked.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pandas  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import lakelsm.frames.spark_engine  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # A worker that collects garbage does not copy the pages of all that.
    manager()
