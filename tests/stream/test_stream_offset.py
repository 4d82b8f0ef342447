"""Offsets survive JSON, and any other JSON is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import StreamOffsetError
from lakelsm.stream.stream_offset import StreamOffset, StreamPhase

_OFFSET = StreamOffset("t", 7, "list-7", StreamPhase.CHANGES, position=2, files=5)


@given(st.sampled_from(StreamPhase), st.integers(1, 2**63 - 1), st.integers(1, 9), st.integers(1, 9))
def test_an_offset_is_equal_after_json(phase: StreamPhase, snapshot: int, read: int, more: int) -> None:
    start = StreamOffset("t", snapshot, "f", phase, position=0)
    for offset in (start, start.at(read, read + more), start.at(read, read)):
        assert StreamOffset.of_json(json.loads(json.dumps(offset.to_json()))) == offset
    assert start.at(read, read).is_complete and not start.is_complete
    assert (start.next_snapshot_id, start.at(1, 1).next_snapshot_id) == (snapshot, snapshot + 1)
    assert start.loads is (phase is StreamPhase.FULL)


@pytest.mark.parametrize(
    "changed",
    [
        {"lakelsm-offset": 2}, {"lakelsm-offset": True}, {"lakelsm-offset": None}, {"table": ""}, {"table": 7},
        {"snapshot": -1}, {"snapshot": "7"}, {"snapshot": True}, {"snapshot": 0}, {"snapshot": 1 << 63},
        {"fingerprint": ""}, {"fingerprint": None}, {"fingerprint": "x" * 2000}, {"phase": "Full"}, {"phase": None},
        {"phase": ["full"]}, {"position": 5}, {"position": -1}, {"position": 1.5}, {"position": None}, {"files": None},
        {"files": 2}, {"position": 0},
    ],
)  # fmt: skip
def test_a_changed_offset_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(StreamOffsetError, match=r"^offset: .*start a new stream\.$"):
        StreamOffset.of_json({**_OFFSET.to_json(), **changed})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.floats(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=9,
    )
)
def test_any_other_value_is_refused(value: object) -> None:
    with pytest.raises(StreamOffsetError):
        StreamOffset.of_json(value)
