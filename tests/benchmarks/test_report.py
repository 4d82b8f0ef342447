"""Measurements, verdicts and the table."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from benchmarks.config import MODE_OPERATIONS, OPERATIONS, named_operations
from benchmarks.report import TARGETS, TITLES, table, verdicts
from benchmarks.timing import Contender, Measurement, Peaks, measure, tree_cpu_seconds, tree_peaks


def _measured(operation: str, contender: str, *seconds: float) -> Measurement:
    return Measurement(operation, contender, list(seconds), peaks=Peaks(process=1 << 20))


def test_contenders_run_in_turn_after_one_warm_up() -> None:
    calls: list[str] = []
    contenders = [Contender(name, lambda name=name: calls.append(name)) for name in "ab"]
    results = measure("read", contenders, repeat=2, slow_seconds=60)
    assert calls == ["a", "b"] * 3
    assert [len(result.seconds) for result in results] == [2, 2]


def test_a_slow_contender_is_measured_once() -> None:
    (result,) = measure("read", [Contender("slow", lambda: time.sleep(0.05))], repeat=5, slow_seconds=0.01)
    assert result.once
    assert len(result.seconds) == 1


def test_a_wrong_answer_is_a_failure_and_stops_only_its_contender() -> None:
    def refuse(_: object) -> None:
        raise AssertionError("wrong answer: 1 rows, expected 2")

    wrong, right = measure("read", [Contender("wrong", int, check=refuse), Contender("right", int)], 2, 60)
    assert wrong.error == "AssertionError: wrong answer: 1 rows, expected 2"
    assert wrong.seconds == []
    assert len(right.seconds) == 2


def test_the_copy_is_removed_when_the_run_fails() -> None:
    removed: list[bool] = []

    def fail() -> None:
        raise OSError("disk")

    measure("load", [Contender("x", fail, teardown=lambda: removed.append(True))], 3, 60)
    assert removed == [True]


def test_this_process_has_memory_and_no_jvm() -> None:
    peaks = tree_peaks(os.getpid())
    if os.path.isdir("/proc/self"):
        assert peaks.process > 1 << 20


def test_processor_time_is_that_of_children_too() -> None:
    before = tree_cpu_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    if os.path.isdir("/proc/self"):
        assert tree_cpu_seconds(os.getpid()) > before


def test_a_verdict_compares_medians_with_the_limit() -> None:
    results = [_measured("read", "Spark parquet scan", 1, 2, 9), _measured("read", "lakelsm", 2.9, 2.9, 2.9)]
    verdict = next(verdict for verdict in verdicts(results) if verdict.target.operation == "read")
    assert (verdict.value, verdict.met) == (1.45, True)
    assert verdict.text().startswith("reached")


def test_merge_engines_are_judged_beside_deduplicate_and_by_their_largest_worker() -> None:
    base = _measured("engine-read", "lakelsm deduplicate", 2.0)
    ours = _measured("engine-read", "lakelsm aggregation", 3.2)
    ours.peaks.largest_worker = 300 << 20
    judged = [v for v in verdicts([base, ours]) if v.target.contender == "lakelsm aggregation" and v.value is not None]
    assert [(v.value, v.met) for v in judged] == [(1.6, False), (300 << 20, True)]
    assert "lakelsm aggregation beside lakelsm deduplicate: 1.60 x (at most 1.50 x)" in judged[0].text()
    assert "lakelsm aggregation, largest worker: 300 MiB (at most 512 MiB)" in judged[1].text()
    assert "1.60" in table([base, ours])


def test_a_target_without_its_peer_is_not_measured() -> None:
    found = verdicts([_measured("upsert", "lakelsm", 1.0)])
    assert [verdict.met for verdict in found if verdict.target.operation == "upsert"] == [None, None]


def test_a_missed_target_says_so() -> None:
    results = [_measured("compact", "Spark parquet copy", 1.0), _measured("compact", "lakelsm", 0.6)]
    texts = [verdict.text() for verdict in verdicts(results)]
    assert any(text.startswith("MISSED") and "0.60 x (at most 0.50 x)" in text for text in texts)


def test_the_table_has_ratios_and_failures() -> None:
    failed = Measurement("read", "delta-rs", error="ValueError: no")
    text = table([_measured("read", "Spark parquet scan", 2.0), _measured("read", "lakelsm", 3.0), failed])
    assert "1.50" in text
    assert "failed: ValueError: no" in text


def test_measurements_survive_json() -> None:
    result = _measured("read", "lakelsm", 1.0)
    assert Measurement.from_dict(result.to_dict()) == result


def test_operations_are_named_one_by_one_or_by_their_group() -> None:
    assert named_operations("read,modes,mode-read") == ("read", *MODE_OPERATIONS)
    assert named_operations(",".join(OPERATIONS)) == OPERATIONS
    with pytest.raises(ValueError, match="groups of them are engines, vectors, modes"):
        named_operations("read,mode")


def test_every_operation_has_a_title_and_every_target_an_operation() -> None:
    assert set(TITLES) == set(OPERATIONS)
    assert {target.operation for target in TARGETS} <= set(OPERATIONS)
