"""What Spark's own reader needs to open a table's files, and whether it can open them.

Local files need nothing. Those of S3 are read through Hadoop's connector `s3a` with the settings of the table's store,
given to the reader for this bucket alone. Where the connector is not on the class path, where the store is of another
kind, or where this JVM has the bucket open already with other credentials (it keeps one connection a bucket), tasks read
the files: `explain` of a DataFrame then shows `StoredRows` instead of `FileScan parquet`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakelsm.errors import StorageError
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.tasks import listing_on_driver, literal_path, parquet_reader, unlogged
from lakelsm.storage.hadoop_connector import CONNECTION_KEYS, connector_root, connector_settings, is_same_connection
from lakelsm.storage.object_location import is_object_uri

_S3A = "fs.s3a."
#: Errors of Java for a connector, or a dependency of it, that is missing or has another version.
_NOT_THERE = ("ClassNotFoundException", "NoClassDefFoundError", "NoSuchMethodError", "No FileSystem for scheme")


@dataclass(frozen=True)
class NativeFiles:
    """``root`` of the table's store becomes ``native_root``, which Spark's reader opens with ``settings`` of Hadoop's."""

    root: str
    native_root: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def scan(self, spark: SparkSession, schema: StructType, paths: Sequence[str]) -> DataFrame:
        """The rows of files by Spark's reader, with the columns of ``schema``."""
        patterns = [literal_path(self.native_root + path[len(self.root) :]) for path in paths]
        reader = parquet_reader(spark, schema, self.settings)
        # A look-up of a local file costs nothing; those of many objects go side by side, as Spark does it.
        with nullcontext() if self.root else listing_on_driver(spark):
            return reader.parquet(*patterns)


#: With a scheme, as Spark looks for paths without one on `fs.defaultFS`.
_LOCAL = NativeFiles("", "file:")


def native_files(spark: SparkSession, store: TableStore) -> NativeFiles | None:
    """How Spark's reader opens the table's files; None where tasks have to."""
    if not is_object_uri(store.paths.root):
        return _LOCAL
    from lakelsm.storage.object_store import ObjectFileIO

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
    """Whether the connector exists, and has opened this bucket with the wanted settings. No request is sent."""
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
            if any(words in text for words in _NOT_THERE):
                return False
            raise StorageError(
                f"{root}: Spark's connector s3a cannot be opened ({text.splitlines()[0]}). Mend Spark's settings "
                "fs.s3a.*, or take its jars from the class path: tasks then read the files."
            ) from error
        return is_same_connection(wanted, {key: opened.get(_S3A + key) or "" for key in CONNECTION_KEYS})
