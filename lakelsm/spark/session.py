"""The Spark session of a call, and checks of the DataFrame that a user passes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException, PySparkRuntimeError, PySparkValueError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from lakelsm.arguments import wrong_argument
from lakelsm.environment import is_submitted
from lakelsm.errors import InvalidInputError, SparkUnavailableError
from lakelsm.spark.connect import (
    active_connect_session,
    analyzed,
    check_same_session,
    has_ended,
    is_connect,
    raise_lost_server,
)

if TYPE_CHECKING:
    from pyspark import SparkContext

_MINIMUM_JAVA = 17
#: Modules that tasks import, and a program that prints a Python's version and which of these modules it lacks.
_TASK_MODULES = ("lakelsm", "pyarrow", "pandas", "numpy")
_PROBE = (
    "import sys, importlib.util as u; "
    "print('%d.%d' % sys.version_info[:2], *[name for name in sys.argv[1:] if u.find_spec(name) is None])"
)
_INSTALL_JAVA = "install one (Debian/Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"


_HADOOP = "spark.hadoop."
#: PySpark's error condition for a JVM that did not start.
_NO_JVM = "JAVA_GATEWAY_EXITED"
#: PySpark's default for the Python of the workers.
_SPARKS_PYTHON = "python3"


def resolve_session(spark: SparkSession | None = None, instead: str | None = None) -> SparkSession:
    """Return the session given, else the active one, else a new one.

    ``instead`` names the remedy without Spark for messages: "call to_arrow".

    Under ``spark-submit`` a new session follows the command line and its properties. In a process of Spark Connect it is
    one of the server that the environment variable SPARK_REMOTE names. Elsewhere it is a local one. The
    workers of a local session run the Python of this process, unless the user has set another one. Raises
    SparkUnavailableError if a session must be started and no JDK 17+ is found (with the install command), if the session
    has ended, and if its workers run a Python without lakelsm.
    """
    try:
        found = spark or SparkSession.getActiveSession() or active_connect_session() or _new_session()
        if has_ended(found):
            raise SparkUnavailableError("The Spark session has ended. Open the table with a running one.")
        if not is_connect(found):
            _check_mode()
            _prepare_workers(found.sparkContext)
    except SparkUnavailableError as error:
        if instead is None:
            raise
        raise SparkUnavailableError(f"{str(error).rstrip('.')}. Without Spark: {instead}.") from error
    return found


def checked_session(spark: SparkSession | None) -> SparkSession | None:
    """Return the session that a user passes, or None. Raises InvalidInputError for any other value."""
    kind: type = type(spark)
    is_session = issubclass(kind, SparkSession) or (is_connect(spark) and kind.__name__ == SparkSession.__name__)
    if spark is not None and not is_session:
        raise wrong_argument("spark", spark, "a SparkSession", "Leave it out for the active session.")
    return spark


def hadoop_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a session under `spark.hadoop.`, by Hadoop's keys."""
    connect: Any = spark
    settings = connect.conf.getAll if is_connect(spark) else dict(spark.sparkContext.getConf().getAll())
    return {key.removeprefix(_HADOOP): value for key, value in settings.items() if key.startswith(_HADOOP)}


def _new_session() -> SparkSession:
    if is_submitted() or is_remote() or "SPARK_REMOTE" in os.environ:
        return _described_session()
    _require_java()
    builder = SparkSession.builder
    for key, value in _default_settings().items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != _NO_JVM:
            raise
        raise SparkUnavailableError(
            f"The JVM of Spark ended at its start; standard error has its message. Correct the cause (JAVA_HOME is "
            f"{os.environ.get('JAVA_HOME') or 'not set'}), or {_INSTALL_JAVA}."
        ) from error


def _described_session() -> SparkSession:
    """Return the session that the command line or the environment describes."""
    try:
        return SparkSession.builder.getOrCreate()
    except ImportError as error:
        raise SparkUnavailableError(
            f"Spark Connect: {str(error).rstrip('.')}. Run: pip install 'lakelsm[connect]'."
        ) from error
    except PySparkValueError as error:
        raise SparkUnavailableError(
            "The environment variable SPARK_REMOTE is not the URL of a Connect server, such as 'sc://host:15002'."
        ) from error


def _default_settings() -> dict[str, str]:
    """Return the settings of a session that lakelsm starts: for one machine, and with a quick start."""
    return {
        "spark.master": "local[*]",
        "spark.app.name": "lakelsm",
        "spark.pyspark.python": sys.executable,
        # Only this machine uses the session, so no host name needs to be resolved.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark's default of 200 is for a cluster. Adaptive execution joins small partitions, but cannot split large ones.
        "spark.sql.shuffle.partitions": str(max(8, 2 * (os.cpu_count() or 1))),
        # Rows pass between the JVM and Python as Arrow.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


def _check_mode() -> None:
    """Raise SparkUnavailableError if PySpark makes columns for Spark Connect alone, which a classic session refuses."""
    if is_remote():
        raise SparkUnavailableError(
            "PySpark runs in the mode of Spark Connect (SPARK_CONNECT_MODE_ENABLED), in which a classic session has no "
            "functions. Use a Connect session, or a process without one."
        )


def _prepare_workers(context: SparkContext) -> None:
    """Set the Python of a local session's workers to that of this process, unless the user has set another one.

    Raises SparkUnavailableError, before the first task, if the workers' Python cannot run tasks. On a cluster, or with
    packages that Spark ships to the workers, only a task can show it (see `task_errors`).
    """
    if not str(context.master).startswith("local") or context._python_includes:
        return
    own = _users_python(context)
    if own is not None:
        _check_python(own, sys.executable)
    # PySpark copies it into each function that it sends to the workers.
    context.pythonExec = own or sys.executable


def _users_python(context: SparkContext) -> str | None:
    """Return the workers' Python that the user has set, by environment or configuration, or None."""
    if context.pythonExec != _SPARKS_PYTHON or "PYSPARK_PYTHON" in os.environ:
        return str(context.pythonExec)
    return context.getConf().get("spark.pyspark.python")


@cache
def _check_python(worker: str, driver: str) -> None:
    """Raise SparkUnavailableError unless the workers' Python has the driver's version and the modules of tasks.

    A successful check is cached.
    """
    path = shutil.which(worker)
    if path is None:
        raise SparkUnavailableError(_wrong_python(worker, "does not exist"))
    if os.path.dirname(path) == os.path.dirname(driver) and os.path.realpath(path) == os.path.realpath(driver):
        return
    ran = subprocess.run([path, "-c", _PROBE, *_TASK_MODULES], capture_output=True, text=True, check=False)
    version, *missing = ran.stdout.split() or ["unknown"]
    if missing:
        raise SparkUnavailableError(_wrong_python(path, f"lacks {', '.join(missing)}"))
    if version != f"{sys.version_info.major}.{sys.version_info.minor}":
        raise SparkUnavailableError(_wrong_python(path, f"has version {version}"))


def _wrong_python(worker: str, what: str) -> str:
    return f"Spark's workers run {worker}, which {what}. {python_remedy()}"


def python_remedy() -> str:
    """Return the setting with which workers run the Python of this program."""
    return (
        f"This program runs {sys.executable}: set the environment variable PYSPARK_PYTHON={sys.executable} before the "
        f"session is created (with spark-submit: --conf spark.pyspark.python={sys.executable})."
    )


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        raise SparkUnavailableError(
            f"Spark needs a Java runtime {_MINIMUM_JAVA} or newer, and none was found: {_INSTALL_JAVA}."
        )
    version = _major_version(_version_text(java))
    if version is not None and version < _MINIMUM_JAVA:
        raise SparkUnavailableError(
            f"Spark needs a Java runtime {_MINIMUM_JAVA} or newer, and {java} is version {version}: {_INSTALL_JAVA}."
        )


def _version_text(java: str) -> str:
    """Return the version text of a runtime: from its file ``release``, else from the runtime, which starts a JVM."""
    release = Path(os.path.realpath(java)).parent.parent / "release"
    if release.is_file():
        for line in release.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("JAVA_VERSION="):
                return line
    return subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr


def _major_version(text: str) -> int | None:
    """Return the major version in the first quoted text of an output ('1.8.0_292' is 8), or None."""
    quoted = text.split('"')
    numbers = quoted[1].split(".") if len(quoted) > 1 else []
    if not numbers or not numbers[0].isdigit():
        return None
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])


def checked_frame(frame: DataFrame, argument: str = "frame") -> DataFrame:
    """Return a frame whose rows tasks can write. Raises InvalidInputError for any other value.

    The frame's session may differ from the table's: ``foreachBatch`` passes frames of a separate session.
    """
    checked_rows(argument, frame)
    if frame.isStreaming:
        raise InvalidInputError(
            f"{argument}: a stream cannot be written directly. Write its batches: {argument}.writeStream.foreachBatch("
            "lambda batch, batch_id: table.write(batch, commit_user='…', batch_id=batch_id))."
        )
    return frame


def session_of_rows(argument: str, frame: DataFrame, given: SparkSession | None) -> SparkSession | None:
    """Return the session for a frame's rows: the one given (None: the active one), or that of a frame of Spark Connect.

    Raises InvalidInputError for a frame that belongs to another session than the one given.
    """
    own = checked_rows(argument, frame).sparkSession
    if given is None:
        return own if is_connect(own) else None
    check_same_session(argument, frame, given)
    return given


def checked_rows(argument: str, frame: DataFrame) -> DataFrame:
    """Return a frame of a session that runs; it may be a stream."""
    kind: type = type(frame)
    if not issubclass(kind, DataFrame):
        raise wrong_argument(argument, frame, "a Spark DataFrame")
    if has_ended(frame.sparkSession):
        raise InvalidInputError(f"{argument}: its Spark session has ended. Create it again in a running session.")
    if not is_connect(frame):
        return frame
    try:
        return analyzed(frame)
    except PySparkException as error:
        raise_lost_server(error)
        reason = (error.getMessage() or str(error)).partition("\n")[0]
        raise InvalidInputError(f"{argument}: Spark cannot analyze the DataFrame: {reason}") from error
