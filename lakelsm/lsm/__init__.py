"""The pure part of planning: levels, sections, compaction units, pruning, splits.

Nothing here reads a file, a clock or a random number, and nothing imports Spark: every function maps frozen values to
frozen values. `lakelsm.plan` makes these values from manifests. Keys are opaque: the caller maps the minimum and
maximum keys of all files of a plan to values with a total order (ints by rank, nulls first), and planning only
compares them.
"""
