"""JVM options of the tests and the demo, and an archive of Spark's classes with which a JVM starts in half the time.

``make setup`` creates the archive once in the environment (``python -m tests.class_archive``; ``--options`` prints the
options instead). Without it, a JVM reads and checks about 15,000 classes before the first query ends. A JVM that does
not match the archive runs without it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pyspark

#: Options for a JVM that ends soon: the time of the optimising compiler would not be recovered. With this compiler alone,
#: the cache of compiled code has 48 MB by default. The tests fill it, and methods would be removed and compiled again.
_SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"


def archive() -> Path:
    """Return the path of the archive for this environment's Spark and Java."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home or shutil.which("java") or "java").resolve()
    return Path(sys.prefix) / f"lakelsm-classes-{pyspark.__version__}-{'-'.join(java.parts[1:])}.jsa"


def jvm_options() -> str:
    """Return the options of a JVM that ends soon, with the archive if it exists."""
    path = archive()
    return f"{_SHORT_LIFE} -XX:SharedArchiveFile=\"{path}\" -Xlog:disable" if path.exists() else _SHORT_LIFE


def make() -> None:
    """Create the archive from the classes that a JVM loads to write, compact and read a table."""
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
