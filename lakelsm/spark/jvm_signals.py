"""Signals that reach the driver's JVM. Under spark-submit the JVM gets them instead of the Python that it started."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession


class _SignalHandler:
    """A handler in the form of Java's SignalHandler."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    def handle(self, signal: Any) -> None:
        """Handle a signal; the JVM calls this in a separate thread."""
        self._notify()

    class Java:
        """The interface that Py4J requires."""

        implements = ("sun.misc.SignalHandler",)


@contextmanager
def jvm_signals(spark: SparkSession, names: Sequence[str], notify: Callable[[], None]) -> Iterator[None]:
    """Call ``notify``, within the block, for each of these signals (``"TERM"``) to the driver's JVM, which continues."""
    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    signal = gateway.jvm.sun.misc.Signal
    notifier = _SignalHandler(notify)
    before = {name: signal.handle(signal(name), notifier) for name in names}
    try:
        yield
    finally:
        with suppress(Py4JError, OSError):  # A JVM that has ended has no handlers.
            for name, handler in before.items():
                signal.handle(signal(name), handler)
