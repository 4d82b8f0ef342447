"""A JVM that outlives drivers: a driver is a process that attaches to it, so that most kills start no JVM."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.campaign.processes import PATIENCE, CampaignError, Child, Voice, descendants, wait_for_end, with_variable
from tests.campaign.streams.steps import DRIVER, JVM, ORDERS, Order, Orders, play, watch_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds until the children of a killed process have ended.
_END_SECONDS = 60.0
_PRELOAD = Path(__file__).parent / "preload"
LOCAL, CLUSTER = "local[2, 4]", "local-cluster[1, 2, 1024]"


@dataclass
class StreamSession:
    """The JVM and its driver. Each is started when it is needed, and again after it was killed."""

    scratch: Path
    master: str = LOCAL
    jvm: Any = None
    driver: Child | None = None
    starts: int = 0
    name: str = "streams"
    _settings: dict[str, str] = field(default_factory=dict)

    @property
    def orders(self) -> Orders:
        return Orders(self.scratch / "orders")

    def started_jvm(self) -> int:
        """Return the process of the JVM, and start it if it does not run."""
        self._driver()
        return int(self.jvm.pid)

    def run(self, query: Any, order: Order | None = None, patience: float = PATIENCE) -> str:
        """Run a query in the driver until it ends. Returns what it reports: usually the text of its error, or ''."""
        driver = self._driver()
        if order is not None:
            order = Order(**{**order.__dict__, "jvm": self.jvm.pid})
        self.orders.give(order)
        driver.pipe.send(query)
        heard = driver.heard(patience)
        if heard is not None and heard[0] == "raised":
            raise CampaignError(f"a driver ended with {heard[1]}")
        is_killed = order is not None and order.victim == JVM and self.orders.kills()
        if is_killed or self.jvm.poll() is not None:
            self.stop()
            return "the JVM was killed"
        if heard is None:
            driver.all_heard()
            self.driver = None
            return "the driver was killed"
        return str(heard[1])

    def stop(self) -> None:
        """End the driver and the JVM."""
        if self.driver is not None:
            self.driver.kill()
            self.driver.all_heard()
            self.driver = None
        if self.jvm is not None:
            self.jvm.kill()
            self.jvm.wait()
            self.jvm = None

    def await_others(self) -> None:
        """Wait for the end of processes whose JVM was killed."""
        own = {os.getpid(), *descendants(os.getpid())}  # The others have lost their parent.
        text = f"{ORDERS}={self.orders.folder}".encode()
        left = wait_for_end([pid for pid in with_variable(text) if pid not in own], _END_SECONDS)
        if left:
            raise CampaignError(f"processes of a killed JVM still run: {left}")

    def _driver(self) -> Child:
        if self.jvm is None:
            self._start_jvm()
        if self.driver is None:
            self.driver = Child.of(drive, self.scratch, self._settings, dict(self._gateway))
            heard = self.driver.heard(PATIENCE)
            if heard is None or heard[0] != "ready":
                raise CampaignError(f"a driver does not start: {heard}")
        return self.driver

    def _start_jvm(self) -> None:
        from pyspark import SparkConf
        from pyspark.java_gateway import launch_gateway

        from tests.spark_session import ROOT, settings

        self.scratch.mkdir(exist_ok=True)
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ[ORDERS] = str(self.orders.folder)
        path = [str(_PRELOAD), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys(path)))
        self._settings = {
            **settings(f"lakelsm-{self.name}", self.scratch),
            "spark.master": self.master,
            "spark.python.daemon.module": "tests.campaign.streams.worker_daemon",
            f"spark.executorEnv.{ORDERS}": str(self.orders.folder),
            "spark.sql.streaming.pollingDelay": "5ms",
            "spark.sql.streaming.stopTimeout": "60s",
        }
        conf = SparkConf(loadDefaults=False)
        for key, value in self._settings.items():
            conf.set(key, value)
        log = (self.scratch / "log").open("ab")
        gateway: Any = launch_gateway(conf, {"stdout": log, "stderr": log})
        self.jvm, self.starts = gateway.proc, self.starts + 1
        parameters = gateway.gateway_parameters
        self._gateway = {
            "PYSPARK_GATEWAY_PORT": str(parameters.port),
            "PYSPARK_GATEWAY_SECRET": str(parameters.auth_token),
            ORDERS: str(self.orders.folder),
        }
        gateway.close()


def drive(say: Voice, scratch: Path, settings: dict[str, str], gateway: dict[str, str]) -> None:
    """Run the queries that the parent sends in the JVM of a gateway, until the pipe is closed."""
    os.environ |= gateway
    log = os.open(scratch / "log", os.O_WRONLY | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    spark = attached(settings)
    from tests.campaign.streams.hooked_source import HookedSource

    spark.dataSource.register(HookedSource)
    play(DRIVER)
    watch_files()
    say("ready")
    while (query := say.receive()) is not None:
        say("ended", query.run(spark))


def attached(settings: dict[str, str]) -> SparkSession:
    """Return the session of a JVM that another process has started, and perhaps used before."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    gateway: Any = launch_gateway(conf)
    # The JVM frees objects of earlier drivers in this one, by numbers that it must not use again.
    gateway.gateway_property.pool.next_id = os.getpid() << 20
    found = gateway.jvm.SparkSession.getDefaultSession()
    if not found.isDefined():
        return SparkSession.builder.config(conf=conf).getOrCreate()
    java = gateway.jvm.JavaSparkContext(found.get().sparkContext())
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    spark = SparkSession(context, found.get())
    for query in spark.streams.active:
        query.stop()
    return spark
