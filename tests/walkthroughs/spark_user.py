"""A Spark user writes, updates, compacts and joins DataFrames."""

from __future__ import annotations

import tempfile

from pyspark.sql import SparkSession

from lakelsm import Catalog

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
catalog = Catalog(tempfile.mkdtemp(), spark)
items = spark.range(1000).selectExpr("id", "CAST(id % 10 AS INT) AS kind", "CONCAT('item ', id) AS name")
table = catalog.create_table("shop.items", items, primary_key=["id"], options={"bucket": "2"}, load=True)

table.update({"name": "upper(name)"}, "kind = 3")
table.delete("kind = 9")
table.compact(full=True)

assert table.read().count() == 900
assert table.read(where="name LIKE 'ITEM%'").count() == 100
assert table.at(snapshot=1).read().count() == 1000
orders = spark.range(5).selectExpr("id AS item")
joined = orders.transform(table.lookup_join({"item": "id"}, columns=["name"]))
assert sorted(row.name for row in joined.collect())[0] == "ITEM 3"
table.inspect.snapshots().to_spark().select("snapshot_id", "operation").show()
