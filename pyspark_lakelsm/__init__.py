"""Makes `spark.read.format("lakelsm")` work without registration.

Spark imports each package whose name begins with ``pyspark_`` and registers its ``DefaultSource``. The import is cheap,
because every session that uses a Python data source does it.
"""

from lakelsm.data_source.source import DefaultSource

__all__ = ["DefaultSource"]
