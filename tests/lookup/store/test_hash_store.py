"""Hash stores: the effect of their options on a file, their limits, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.lookup.store import hash_keys, hash_store
from lakelsm.lookup.store.hash_store import HashStoreFormat
from lakelsm.lookup.store.lookup_store import BlockCache, StoreLayout
from lakelsm.lookup.store.sort_block import BlockCompression, BlockForm
from lakelsm.types import DataField, parse_type

ROWS = 20_000


def layout(key: str = "BIGINT NOT NULL", value: str = "STRING", rows_of: str = "") -> StoreLayout:
    return StoreLayout((DataField(0, "k", parse_type(key)),), (DataField(1, "v", parse_type(value)),), rows_of=rows_of)


def store_format(**given: object) -> HashStoreFormat:
    options = {"load_factor": 0.75, "compression": BlockCompression.ZSTD, "bloom_fpp": 0.05, **given}
    load_factor = options.pop("load_factor")
    return HashStoreFormat(BlockForm(4096, **options), BlockCache(1 << 20), load_factor)  # type: ignore[arg-type]


def numbers(rows: int = ROWS) -> pa.Table:
    return pa.table({"k": np.arange(rows) * 2, "v": [f"value {at % 100}" for at in range(rows)]})


def written(path: Path, **given: object) -> int:
    path.unlink(missing_ok=True)
    store_format(**given).write(path, layout(), [numbers()])
    return path.stat().st_size


def test_options_act_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s"
    plain = written(path, compression=BlockCompression.NONE, bloom_fpp=None)
    assert written(path, compression=BlockCompression.ZSTD, bloom_fpp=None) < 0.8 * plain
    assert written(path, compression=BlockCompression.LZ4, bloom_fpp=None) < 0.8 * plain
    slot = 3 * 8
    looser = written(path, compression=BlockCompression.NONE, bloom_fpp=None, load_factor=0.25)
    assert looser - plain == pytest.approx(ROWS * (4 - 4 / 3) * slot, rel=0.01)
    with_bloom = written(path, compression=BlockCompression.NONE, bloom_fpp=0.01)
    assert with_bloom - plain == pytest.approx(ROWS * 9.585 / 8, rel=0.05)


def test_the_bloom_filter_alone_excludes_most_missing_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def noted(slots: object, keys: np.ndarray, *rest: object) -> np.ndarray:
        counts.append(len(keys))
        return np.full(len(keys), -1)

    monkeypatch.setattr(hash_store, "value_offsets", noted)
    misses = pa.table({"k": np.arange(10_000) * 2 + 1})
    for fpp, max_keys in ((0.05, 700), (0.001, 40), (None, 10_000)):
        written(tmp_path / "s", bloom_fpp=fpp)
        store_format().open(tmp_path / "s", layout()).find(misses)
        assert sum(counts) <= max_keys
        counts.clear()
    assert max_keys == 10_000


def test_keys_beyond_their_memory_are_kept_in_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "one")
    monkeypatch.setattr(hash_keys.KeyRuns.__init__, "__defaults__", (10_000,))
    monkeypatch.setattr(hash_keys, "_MERGED_BYTES", 50_000)
    monkeypatch.setattr(hash_store, "_BLOCK_ROWS", 1_000)
    written(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]


def test_large_rows_are_encoded_and_decoded_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_store, "_BLOCK_BYTES", 2_000)
    monkeypatch.setattr(hash_store, "_DECODED_BYTES", 1_000)
    monkeypatch.setattr(hash_store, "_MAX_KEYS", 70)
    rows = pa.table({"k": np.arange(300), "v": ["x" * (at * 37 % 5_000) for at in range(300)]})
    path = tmp_path / "s"
    store_format().write(path, layout(), [rows])
    keys = np.arange(400)[::-1]
    found = store_format().open(path, layout()).find(pa.table({"k": keys}))
    assert found.probes.tolist() == list(range(100, 400))
    assert found.rows["v"].to_pylist() == rows["v"].to_pylist()[::-1]


def test_columns_without_row_bytes_are_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"column 'v': .* ARRAY<INT>.* to 'arrow'"):
        store_format().write(tmp_path / "s", layout(value="ARRAY<INT>"), [])
    assert list(tmp_path.iterdir()) == []
