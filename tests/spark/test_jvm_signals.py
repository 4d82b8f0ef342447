"""Signals of the JVM. tests/jobs/test_query_service_job.py tests that those of spark-submit end a service."""

from __future__ import annotations

import threading
from typing import Any

from pyspark.sql import SparkSession

from lakelsm.spark.jvm_signals import jvm_signals


def test_python_is_notified_of_a_signal_of_the_jvm_within_the_context(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    signals = gateway.jvm.sun.misc.Signal
    harmless = signals("WINCH")
    notified, notified_after = threading.Event(), threading.Event()
    with jvm_signals(spark, ("WINCH",), notified.set):
        getattr(signals, "raise")(harmless)
        assert notified.wait(20)
        notified.clear()
    with jvm_signals(spark, ("WINCH",), notified_after.set):
        getattr(signals, "raise")(harmless)
        assert notified_after.wait(20)
    assert not notified.is_set()
