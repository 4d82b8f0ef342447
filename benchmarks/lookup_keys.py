"""The keys of lookups, the same for lakelsm and its peers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.config import LOOKUP_BATCH, LOOKUP_BATCHES, LOOKUP_GETS, LOOKUP_HITS, BenchConfig
from benchmarks.workspace import build

Keys = npt.NDArray[np.int64]

_SEED = 20131225


def prepare_keys(config: BenchConfig) -> None:
    """Draw the keys of each operation once for each shape of the data."""
    draw = np.random.default_rng(_SEED)
    for operation, share in LOOKUP_HITS.items():
        count = LOOKUP_GETS if operation.startswith("lookup-get") else LOOKUP_BATCH * LOOKUP_BATCHES
        keys = draw.integers(0, config.rows, count)
        keys[draw.random(count) >= share] += config.rows  # No row has such a large key.

        def make(folder: Path, keys: Keys = keys) -> None:
            folder.mkdir(parents=True)
            np.save(folder / "keys.npy", keys)

        build(config.data(operation), make)


def keys_of(config: BenchConfig, operation: str) -> Keys:
    """Return the keys of an operation, from `prepare_keys`."""
    keys: Keys = np.load(config.data(operation) / "keys.npy")
    return keys


def check_found(config: BenchConfig, operation: str, found: object) -> None:
    """Raise AssertionError unless the number of found rows equals that of the keys with a row."""
    want = int((keys_of(config, operation) < config.rows).sum())
    assert found == want, f"wrong answer: {found} rows, expected {want}"
