"""Measurements, verdicts and the table."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from benchmarks import names, timing
from benchmarks.config import MODE_OPERATIONS, OPERATIONS, SPEED_OPERATIONS, named_operations
from benchmarks.names import CLICKHOUSE, COPY, DELTA, ENGINE, LOCAL, SCAN, first
from benchmarks.report import TITLES, failures, judged, table
from benchmarks.targets import SPEED, TARGETS, verdicts
from benchmarks.timing import (
    Contender,
    Measurement,
    Peaks,
    Turns,
    error_line,
    machine_cpu_seconds,
    measure,
    others_share,
    tree_cpu_seconds,
    tree_peaks,
)


def _measured(operation: str, contender: str, *seconds: float) -> Measurement:
    return Measurement(operation, contender, list(seconds), peaks=Peaks(process=1 << 20))


def test_contenders_run_in_turn_after_one_warm_up() -> None:
    calls: list[str] = []
    contenders = [Contender(name, lambda name=name: calls.append(name)) for name in "ab"]
    results = measure("read", contenders, Turns(2, 60))
    assert calls == ["a", "b"] * 3
    assert [len(result.seconds) for result in results] == [2, 2]


def test_a_slow_contender_is_measured_once() -> None:
    (result,) = measure("read", [Contender("slow", lambda: time.sleep(0.05))], Turns(5, 0.01))
    assert result.once
    assert len(result.seconds) == 1


def test_long_measurements_are_fewer_but_at_least_one(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(repeat=5, slow_seconds=60, max_seconds=20)
    assert [turns.after(seconds) for seconds in (0.1, 4, 6, 50, 60, 90)] == [5, 5, 3, 1, 0, 0]
    calls: list[str] = []
    seconds = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: seconds[0])

    def run(name: str, takes: float) -> None:
        calls.append(name)
        seconds[0] += takes

    contenders = [Contender("fast", lambda: run("fast", 1)), Contender("long", lambda: run("long", 20))]
    fast, long = measure("read", contenders, Turns(3, 60, max_seconds=30))
    assert (len(fast.seconds), len(long.seconds), long.once) == (3, 1, False)
    assert calls == ["fast", "long", "fast", "long", "fast", "fast"]


def test_memory_is_sampled_in_the_warm_up_only(monkeypatch: pytest.MonkeyPatch) -> None:
    sampled: list[str] = []
    turn = iter(["warm-up", "first", "second"])
    now = [""]

    def peaks(root: int) -> Peaks:
        sampled.append(now[0])
        return Peaks(process=len(sampled))

    monkeypatch.setattr(timing, "tree_peaks", peaks)
    contender = Contender("x", lambda: time.sleep(0.01), setup=lambda: now.__setitem__(0, next(turn)))
    (result,) = measure("read", [contender], Turns(2, 60))
    if os.path.isdir("/proc/self"):
        assert set(sampled) == {"warm-up"}
        assert result.peaks.process == len(sampled)


def test_a_wrong_answer_is_a_failure_and_stops_only_its_contender() -> None:
    def refuse(_: object) -> None:
        raise AssertionError("wrong answer: 1 rows, expected 2")

    wrong, right = measure("read", [Contender("wrong", int, check=refuse), Contender("right", int)], Turns(2, 60))
    assert wrong.error == "AssertionError: wrong answer: 1 rows, expected 2"
    assert wrong.seconds == []
    assert len(right.seconds) == 2


def test_an_error_of_java_is_reported_by_its_cause() -> None:
    text = "An error occurred while calling o45.sql.\n: java.lang.RuntimeException: Argument x is unknown.\n\tat a.b"
    assert error_line(ValueError(text)) == "ValueError: java.lang.RuntimeException: Argument x is unknown."
    assert error_line(ValueError("")) == "ValueError: "


def test_the_copy_is_deleted_if_the_run_fails() -> None:
    removed: list[bool] = []

    def fail() -> None:
        raise OSError("disk")

    measure("load", [Contender("x", fail, teardown=lambda: removed.append(True))], Turns(3, 60))
    assert removed == [True]


def test_this_process_has_memory_and_no_jvm() -> None:
    peaks = tree_peaks(os.getpid())
    if os.path.isdir("/proc/self"):
        assert peaks.tree >= peaks.process > 1 << 20


def test_a_process_of_a_pool_counts_as_a_worker() -> None:
    with subprocess.Popen([sys.executable, "-c", "print(); input()"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        peaks = tree_peaks(os.getpid())
        child.communicate(b"\n")
    if os.path.isdir("/proc/self"):
        assert peaks.workers >= peaks.largest_worker > 1 << 20
        assert peaks.tree >= peaks.process + peaks.workers


def test_the_machines_processor_time_includes_this_process() -> None:
    machine, own = machine_cpu_seconds(), tree_cpu_seconds(os.getpid())
    sum(range(3_000_000))
    if os.path.isdir("/proc/self"):
        assert machine_cpu_seconds() - machine >= (tree_cpu_seconds(os.getpid()) - own) / 2 > 0


def test_processor_time_includes_children() -> None:
    before = tree_cpu_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    if os.path.isdir("/proc/self"):
        assert tree_cpu_seconds(os.getpid()) > before


def test_a_verdict_compares_medians_with_the_limit() -> None:
    results = [_measured("read", SCAN, 1, 2, 9), _measured("read", first(ENGINE), 2.9, 2.9, 2.9)]
    (verdict,) = [verdict for verdict in verdicts(results) if verdict.value is not None]
    assert (verdict.value, verdict.met) == (1.45, False)
    expected = "MISSED       read, lakelsm, first query beside Spark parquet scan: 1.45 x (at most 1.35 x)"
    assert verdict.text("read") == expected


def test_a_busy_machine_compares_processor_time_and_a_quiet_one_shows_it() -> None:
    scan = Measurement("read", SCAN, [1.0], [2.0])
    ours = Measurement("read", ENGINE, [1.1], [2.6])
    (quiet,) = [verdict for verdict in verdicts([scan, ours], quiet=True) if verdict.value is not None]
    (noisy,) = [verdict for verdict in verdicts([scan, ours], quiet=False) if verdict.value is not None]
    assert (quiet.value, quiet.met, noisy.value, noisy.met) == (1.1, True, 1.3, False)
    assert quiet.text("read").endswith(": 1.10 x (at most 1.20 x, 1.30 x CPU)")
    assert noisy.text("read").endswith(": 1.30 x CPU (at most 1.20 x CPU, 1.10 x wall)")


def test_a_target_of_processor_time_uses_it_also_on_a_quiet_machine() -> None:
    results = [Measurement("load", CLICKHOUSE, [9.0], [17.0]), Measurement("load", LOCAL, [12.0], [15.3])]
    (verdict,) = [verdict for verdict in verdicts(results) if verdict.value is not None]
    assert (verdict.value, verdict.met) == (0.9, True)


def test_a_cold_measurement_beside_a_warm_one_is_reported() -> None:
    results = [Measurement("compact", COPY, [9.0], [9.0], once=True), Measurement("compact", ENGINE, [3.0], [3.0])]
    (verdict,) = [verdict for verdict in verdicts(results) if verdict.value is not None]
    assert verdict.text("compact").endswith(": 0.33 x (at most 0.42 x, 0.33 x CPU, one side cold)")
    results[1].once = True
    assert not any(verdict.cold for verdict in verdicts(results))


def test_seconds_are_wall_time_also_on_a_busy_machine() -> None:
    (verdict,) = [v for v in verdicts([Measurement("count", LOCAL, [0.4], [0.2])], quiet=False) if v.value is not None]
    assert (verdict.value, verdict.met) == (0.4, False)
    assert verdict.text("count").endswith(": 0.40 s (at most 0.30 s, 0.20 s CPU)")


def test_merge_engines_are_compared_with_deduplicate_and_by_their_largest_worker() -> None:
    base = _measured("engine-read", "lakelsm deduplicate", 2.0)
    ours = _measured("engine-read", "lakelsm aggregation", 3.2)
    ours.peaks.largest_worker = 300 << 20
    found = [v for v in verdicts([base, ours]) if v.target.contender == "lakelsm aggregation" and v.value is not None]
    assert [(v.value, v.met) for v in found] == [(1.6, False), (300 << 20, True)]
    assert "lakelsm aggregation beside lakelsm deduplicate: 1.60 x (at most 1.15 x)" in found[0].text("")
    assert "lakelsm aggregation, largest worker: 300 MiB (at most 512 MiB)" in found[1].text("")
    assert "1.60" in table([base, ours])


def test_a_target_without_its_peer_is_not_measured() -> None:
    found = [verdict for verdict in verdicts([_measured("upsert", ENGINE, 1.0)]) if verdict.target.operation == "upsert"]
    assert {verdict.met for verdict in found} == {None}
    assert all(verdict.text("").startswith("not measured") for verdict in found)


def test_a_missed_target_is_listed_under_its_heading() -> None:
    results = [_measured("compact", COPY, 1.0), _measured("compact", "lakelsm", 0.6), _measured("plan", "lakelsm", 1.0)]
    lines = judged(verdicts(results), ("compact", "plan"))
    speed, bounds = lines[: lines.index("")], lines[lines.index("") + 1 :]
    assert speed[0] == "Speed to reach:"
    assert any(line.startswith("MISSED") and "0.60 x (at most 0.42 x)" in line for line in speed)
    assert bounds[:2] == ["Bounds to keep:", "reached      planning (metadata only), lakelsm: 1.00 s (at most 2.00 s)"]
    assert not any("upsert" in line for line in lines)


def test_failures_are_listed_by_name_even_without_measurements() -> None:
    failed = [Measurement("install", "chdb", error="no such version"), Measurement("read", DELTA, error="ValueError: no")]
    assert failures(failed) == ["Failed:", "chdb, install: no such version", "delta-rs, read: ValueError: no", ""]
    assert failures([_measured("read", ENGINE, 1.0)]) == []


def test_the_share_of_others_is_that_of_the_measured_regions() -> None:
    cores = os.cpu_count() or 1
    quiet = Measurement("read", ENGINE, [3.0], [6.0], [0.0])
    busy = Measurement("read", SCAN, [1.0], [1.0], [1.0 * cores])
    assert (others_share([]), others_share([quiet]), others_share([quiet, busy])) == (0.0, 0.0, 0.25)


def test_the_table_has_ratios_and_failures() -> None:
    failed = Measurement("read", "delta-rs", error="ValueError: no")
    text = table([_measured("read", "Spark parquet scan", 2.0), _measured("read", "lakelsm", 3.0), failed])
    assert "1.50" in text
    assert "failed: ValueError: no" in text


def test_measurements_survive_json() -> None:
    result = _measured("read", "lakelsm", 1.0)
    assert Measurement.from_dict(result.to_dict()) == result


def test_operations_are_selected_singly_or_by_group() -> None:
    assert named_operations("read,modes,mode-read") == ("read", *MODE_OPERATIONS)
    assert named_operations(",".join(OPERATIONS)) == OPERATIONS
    with pytest.raises(ValueError, match="groups: speed, engines, vectors, modes"):
        named_operations("read,mode")


def test_every_operation_has_a_title_and_every_target_an_operation() -> None:
    assert set(TITLES) == set(OPERATIONS)
    assert {target.operation for target in TARGETS} <= set(OPERATIONS)
    assert {target.operation for target in SPEED} == set(SPEED_OPERATIONS)


def test_targets_of_speed_name_contenders_by_their_constants() -> None:
    known = {value for name, value in vars(names).items() if name.isupper()}
    bare = {
        name.removesuffix(", first query").removesuffix(" (table / 10)")
        for target in SPEED
        for name in (target.contender, target.beside)
        if name and not target.operation.startswith("engine-")
    }
    assert bare <= known
