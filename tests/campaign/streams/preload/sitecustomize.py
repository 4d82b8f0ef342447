"""Loads the modules that PySpark's daemons need, once: Spark starts a process for each call of a data source.

Python imports this module at its start, because its directory is in the PYTHONPATH of the JVM. Without it, each of these
processes takes half a second of CPU.
"""

from __future__ import annotations

import sys

if sys.orig_argv[1:3] == ["-m", "pyspark.daemon"]:
    import gc
    import importlib

    import tests.worker_daemon  # noqa: F401

    # Without the module of the process that commits: the data source finds out by it where it runs.
    for _module in (
        "pyspark.sql.worker.create_data_source",
        "pyspark.sql.worker.plan_data_source_read",
        "pyspark.sql.worker.write_into_data_source",
        "pyspark.sql.streaming.python_streaming_source_runner",
        "lakelsm.data_source.limited_reader",
        "lakelsm.data_source.stream_writer",
        "lakelsm.table.table",
        "tests.campaign.streams.hooked_source",
    ):
        importlib.import_module(_module)
    gc.collect()
    gc.freeze()
