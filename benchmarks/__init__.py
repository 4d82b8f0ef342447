"""Benchmark harness of lakelsm: floors, the engine and its peers on the same rows, in one run.

Start it with ``python -m benchmarks --rows 8000000``; ``--help`` lists the settings, docs/benchmarks.md says what is
compared with what. Importing this package imports nothing else: the peers' environments import parts of it too.
"""
