"""Decides from metadata what a read, a changelog, a write, a compaction or a count does, as frozen plans.

Snapshots and manifests are read through `lakelsm.snapshots`, from the `TableStore` that the caller opened. Rules that
need only values are in `lakelsm.lsm`. Nothing here uses Spark, a clock or chance, and no file is opened by a path.
"""
