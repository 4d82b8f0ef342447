"""The lanes of upkeep, on small tables: answers are checked, and bare requests equal those of the commits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks import upkeep_lane, upkept_tables
from benchmarks.config import BenchConfig
from benchmarks.names import BARE_AVRO, BARE_REQUESTS, DIRECTORY_WALK, ENGINE, cold
from benchmarks.store_commits import COMMITS, StoreCommits
from benchmarks.upkeep_lane import run
from tests.storage.object_server import ObjectServer


def test_expiry_orphan_scan_and_check_are_measured_with_right_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (upkept_tables, upkeep_lane):
        monkeypatch.setattr(module, "SNAPSHOTS", 40)
    monkeypatch.setattr(upkeep_lane, "_EXPIRED", 4)
    config = BenchConfig(workdir=str(tmp_path), files=200, repeat=1)
    results = run(config.with_operations(("expire", "orphan-scan", "check")))
    assert [result.error for result in results] == [""] * 5
    assert {(result.operation, result.contender) for result in results} == {
        ("expire", ENGINE),
        ("orphan-scan", ENGINE),
        ("orphan-scan", DIRECTORY_WALK),
        ("check", ENGINE),
        ("check", BARE_AVRO),
    }


def test_bare_requests_equal_those_of_the_commits(object_server: ObjectServer) -> None:
    options = {key: str(value) for key, value in object_server.options.items()}
    contenders = StoreCommits(f"{object_server.new_bucket()}/w", options).contenders()
    sent: dict[str, Counter[str]] = {}
    for contender in contenders:
        contender.setup()
        with object_server.counted() as sent[contender.name]:
            contender.run()
    warm = {"GET": 6 * COMMITS, "PUT": 5 * COMMITS}
    assert sent[ENGINE] == sent[BARE_REQUESTS] == warm
    assert sent[cold(ENGINE)] == sent[cold(BARE_REQUESTS)] == {**warm, "GET": 8 * COMMITS}
