"""Options of the JVMs of tests and demo, and the archive of Spark's classes from which they start in half the time.

``make setup`` makes the archive once in the environment (``python -m tests.class_archive``; ``--options`` prints them
instead): a JVM reads and checks some 15,000 classes otherwise before the first query is done. A JVM for which an
archive does not fit goes without it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pyspark

#: What a JVM gets that soon ends: what the optimising compiler takes it would not give back.
_SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def archive() -> Path:
    """The archive of this environment's Spark and Java."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home or shutil.which("java") or "java").resolve()
    return Path(sys.prefix) / f"lakelsm-classes-{pyspark.__version__}-{'-'.join(java.parts[1:])}.jsa"


def jvm_options() -> str:
    """The options of a JVM that soon ends; without the archive where there is none."""
    path = archive()
    return f"{_SHORT_LIFE} -XX:SharedArchiveFile=\"{path}\" -Xlog:disable" if path.exists() else _SHORT_LIFE


def make() -> None:
    """Make the archive from what a JVM loads for writing, compacting and reading a table."""
    from lakelsm import Catalog
    from tests.spark_session import build_session

    path = archive()
    if path.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "classes.jsa"
        java = f"-Dderby.system.home={folder} {_SHORT_LIFE} -XX:ArchiveClassesAtExit={made} -Xlog:disable"
        spark = build_session("class-archive", Path(folder), spark__driver__extraJavaOptions=java)
        table = Catalog(folder, spark).create_table(
            "db.t", "k INT, p INT, v STRING", primary_key=["k", "p"], partition_by=["p"], options={"bucket": "2"}
        )
        for text in ("a", "b"):
            table.write(spark.createDataFrame([(k, k % 2, text) for k in range(9)], "k INT, p INT, v STRING"))
        table.read("k < 5").collect()
        table.compact(full=True)
        table.read().count()
        gateway = spark.sparkContext._gateway
        assert gateway is not None, "a session that runs has a JVM"
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        shutil.copy(made, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)


if __name__ == "__main__":
    if sys.argv[1:] == ["--options"]:
        print(jvm_options())
    else:
        make()
