"""What hints may say: nothing, or what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.hints import Hints
from tests.maintain.versioned_table import versioned_table


@pytest.mark.parametrize(
    ("name", "text", "kept", "rules"),
    [
        ("LATEST", None, [1, 2, 3], []),
        ("LATEST", "3", [1, 2, 3], []),
        ("LATEST", "2", [1, 2, 3], ["stale-hint"]),
        ("LATEST", "9", [1, 2, 3], ["latest-hint"]),
        ("LATEST", "-1", [1, 2, 3], ["stale-hint"]),
        ("EARLIEST", "1", [1, 2, 3], []),
        ("EARLIEST", "2", [2, 3], ["expiry-unfinished"]),
        ("EARLIEST", "7", [1, 2, 3], ["stale-hint"]),
    ],
)
def test_a_hint_names_what_is_there_or_is_told(
    tmp_path: Path, name: str, text: str | None, kept: list[int], rules: list[str]
) -> None:
    table = versioned_table(tmp_path, 3)
    store, hint = table._store(), Path(table._store().paths.snapshot_dir) / name
    hint.unlink(missing_ok=True)
    if text is not None:
        hint.write_text(text)
    findings = Findings()
    hints = Hints(store, findings)
    ids = store.snapshots.ids()
    assert list(hints.kept(ids)) == kept
    hints.check_latest(ids)
    assert [rule for rule, _ in findings._found] == rules
