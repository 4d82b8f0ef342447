"""Whether the rows of a DataFrame are so few that one task writes them sooner than a shuffle would spread them.

A shuffle of 80,000 rows costs more than all the rest of writing them: two stages, a plan of each, the hash of the bucket
as generated code. What Spark knows of the input before it runs decides, and no job is started for it.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

#: Bytes of an input, as Spark estimates them (of files: their size), that one task writes.
SMALL_BYTES = 8 << 20

#: Steps that cost little a row and make no rows. Everything else may need all cores, however small its input is.
_CHEAP_STEPS = frozenset(
    {"Project", "Filter", "SubqueryAlias", "View", "Union", "LocalRelation", "LogicalRelation", "Range", "OneRowRelation"}
)
_COSTLY_EXPRESSIONS = ("PYTHON_UDF", "SCALA_UDF")
#: Steps of a plan that are looked at.
_MOST_STEPS = 40


def is_small_input(frame: DataFrame) -> bool:
    """Whether one task is to compute and write the rows."""
    plan = frame._jdf.queryExecution().analyzed()
    steps = [plan]
    for step in steps:
        if step.nodeName() not in _CHEAP_STEPS or len(steps) > _MOST_STEPS:
            return False
        children = step.children()
        steps += [children.apply(at) for at in range(children.size())]
    jvm: Any = frame.sparkSession.sparkContext._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if any(plan.containsPattern(patterns.withName(name)) for name in _COSTLY_EXPRESSIONS):
        return False
    return int(str(plan.stats().sizeInBytes())) <= SMALL_BYTES
