"""`format("lakelsm")`: tables as a data source of PySpark's Python Data Source API. Its code runs in Spark's workers."""
