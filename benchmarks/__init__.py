"""Benchmark harness of lakelsm: floors, lakelsm and its peers on the same rows, in one run.

Start it with ``python -m benchmarks --rows 8000000``; ``--help`` lists the settings, docs/benchmarks.md describes the
comparisons. Importing this package imports nothing else, because the peers' environments import parts of it.
"""
