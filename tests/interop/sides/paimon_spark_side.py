"""Java Paimon's Spark connector as a peer, with its own Spark and JVM. Tables are written and read by SQL.

Arguments: the Maven coordinate, the directory for jars, the warehouse.
"""

import datetime as dt
import os
import sys
import time

os.environ["TZ"] = "UTC"
time.tzset()
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import types as T  # noqa: E402
from serve import SHORT_LIFE, serve  # noqa: E402

EPOCH = dt.datetime(1970, 1, 1)
coordinate, jars, warehouse = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars.packages", coordinate)
    .config("spark.jars.ivy", jars)
    .config("spark.driver.extraJavaOptions", SHORT_LIFE)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.buffer.pageSize", "1m")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.catalog.paimon", "org.apache.paimon.spark.SparkCatalog")
    .config("spark.sql.catalog.paimon.warehouse", warehouse)
    .config("spark.sql.extensions", "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def to_wire(value, kind):
    if value is None:
        return None
    if isinstance(kind, T.StructType):
        return [to_wire(part, field.dataType) for part, field in zip(value, kind.fields)]
    if isinstance(kind, T.ArrayType):
        return [to_wire(part, kind.elementType) for part in value]
    if isinstance(kind, T.MapType):
        return [[to_wire(key, kind.keyType), to_wire(part, kind.valueType)] for key, part in value.items()]
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        since = value - EPOCH
        return ((since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds) * 1000
    if isinstance(kind, T.DateType):
        return (value - EPOCH.date()).days
    if isinstance(kind, T.BinaryType):
        return "hex:" + bytes(value).hex()
    return str(value) if isinstance(kind, (T.DecimalType, T.FloatType, T.DoubleType)) else value


def sql(statements):
    """Run statements, and return the rows of the last one."""
    frame = None
    for statement in statements:
        frame = spark.sql(statement)
    return [to_wire(row, frame.schema) for row in frame.collect()]


serve({"sql": sql})
