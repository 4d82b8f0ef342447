"""Signals of the JVM. That those of spark-submit end a service is in tests/jobs/test_query_service_job.py."""

from __future__ import annotations

import threading
from typing import Any

from pyspark.sql import SparkSession

from lakelsm.spark.jvm_signals import jvm_signals


def test_python_is_told_of_a_signal_of_the_jvm_for_as_long_as_it_asks(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    signals = gateway.jvm.sun.misc.Signal
    harmless = signals("WINCH")
    told, told_after = threading.Event(), threading.Event()
    with jvm_signals(spark, ("WINCH",), told.set):
        getattr(signals, "raise")(harmless)
        assert told.wait(20)
        told.clear()
    with jvm_signals(spark, ("WINCH",), told_after.set):
        getattr(signals, "raise")(harmless)
        assert told_after.wait(20)
    assert not told.is_set()
