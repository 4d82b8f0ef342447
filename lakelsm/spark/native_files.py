"""Decides whether and how Spark's own Parquet reader opens a table's files.

Local files need no settings. Files on S3 are read through Hadoop's connector `s3a`, with the settings of the table's
storage, which the reader gets for this bucket alone. Tasks read the files if the connector is not on the class path, if
the store is of another kind, if a client of Spark Connect cannot examine the connector, or if this JVM has opened the
bucket with other credentials (it keeps one connection for each bucket): `explain` of a DataFrame then shows `StoredRows`
instead of `FileScan parquet`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakelsm.errors import StorageError
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.connect import is_connect
from lakelsm.spark.tasks import listing_on_driver, literal_path, parquet_reader, unlogged
from lakelsm.storage.hadoop_connector import CONNECTION_KEYS, connector_root, connector_settings, is_same_connection
from lakelsm.storage.object_location import is_object_uri

_S3A = "fs.s3a."
#: Java's errors if the connector or a dependency is missing or has another version.
_MISSING_CONNECTOR = ("ClassNotFoundException", "NoClassDefFoundError", "NoSuchMethodError", "No FileSystem for scheme")


@dataclass(frozen=True)
class NativeFiles:
    """Files that Spark's reader can open: ``root`` becomes ``native_root``, with ``settings`` of Hadoop."""

    root: str
    native_root: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def scan(self, spark: SparkSession, schema: StructType, paths: Sequence[str]) -> DataFrame:
        """Return the rows of files, read by Spark, with the columns of ``schema``."""
        patterns = [literal_path(self.native_root + path[len(self.root) :]) for path in paths]
        reader = parquet_reader(spark, schema, self.settings)
        # Looking up local files costs little on the driver. Spark looks up many objects in parallel.
        with nullcontext() if self.root else listing_on_driver(spark):
            return reader.parquet(*patterns)


#: With a scheme, because Spark looks up paths without one on `fs.defaultFS`.
_LOCAL = NativeFiles("", "file:")


def native_files(spark: SparkSession, store: TableStore) -> NativeFiles | None:
    """Return how Spark's reader opens the table's files; None if tasks must read them."""
    if not is_object_uri(store.paths.root):
        return _LOCAL
    from lakelsm.storage.object_store import ObjectFileIO

    if is_connect(spark):
        return None
    file_io = store.file_io
    if not isinstance(file_io, ObjectFileIO):
        return None
    root = connector_root(file_io.location)
    if root is None:
        return None
    wanted = connector_settings(file_io.options)
    settings = {f"{_S3A}bucket.{file_io.location.bucket}.{key}": value for key, value in wanted.items()}
    if not _opens(spark, root, settings, wanted):
        return None
    return NativeFiles(file_io.location.root, root, settings)


def _opens(spark: SparkSession, root: str, settings: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Return whether the connector exists and has the wanted settings for this bucket. No request is sent."""
    from py4j.protocol import Py4JJavaError

    jvm = spark.sparkContext._jvm
    assert jvm is not None
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    with unlogged():
        for key, value in settings.items():
            hadoop.set(key, value)
        try:
            opened = jvm.org.apache.hadoop.fs.Path(f"{root}/").getFileSystem(hadoop).getConf()
        except Py4JJavaError as error:
            text = str(error.java_exception.toString())
            if any(words in text for words in _MISSING_CONNECTOR):
                return False
            raise StorageError(
                f"{root}: Spark's connector s3a cannot be opened ({text.splitlines()[0]}). Correct Spark's settings "
                "fs.s3a.*, or remove its jars from the class path, so that tasks read the files."
            ) from error
        return is_same_connection(wanted, {key: opened.get(_S3A + key) or "" for key in CONNECTION_KEYS})
