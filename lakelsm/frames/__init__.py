"""Execution on Spark: everything that takes or returns a DataFrame. Only this room and `spark/` import PySpark."""
