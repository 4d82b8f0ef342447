"""Decides from metadata what a read, a changelog, a write, a compaction or a count does, as frozen plans.

Snapshots and manifests are read through `lakelsm.snapshots`, of the `TableStore` that the caller opened. The rules that
need nothing but values are in `lakelsm.lsm`. No Spark, clock or chance, and no file is opened by a path.
"""
