"""Adapters of the planning cases (universal.jsonl, interval.jsonl, compact_task.jsonl): case -> (expected,
actual).

The two results of an adapter are plain values. The case passes if and only if they are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from lakelsm.lsm.compact_task import CompactPlan, drops_deletes, plan_compaction
from lakelsm.lsm.interval_partition import Section, interval_partition
from lakelsm.lsm.levels import FileRange, SortedRun, level_count, sorted_runs
from lakelsm.lsm.universal_compaction import (
    CompactionPolicy,
    CompactUnit,
    create_unit,
    pick,
    pick_early_full,
    pick_for_size_amplification,
    pick_for_size_ratio,
)
from lakelsm.options import TableOptions

Case = Mapping[str, Any]


def run_universal(case: Case) -> tuple[Any, Any]:
    """Run a case of universal.jsonl. A `sequence` compares the list of the outcomes of its calls."""
    options = case["options"]
    if case["method"] == "sequence":
        return _run_sequence(case)
    runs = _runs(case["runs"])
    return _expected_unit(case["expect"]), _unit(_pick_once(case["method"], options, runs))


def run_interval(case: Case) -> tuple[Any, Any]:
    """Run a case of interval.jsonl: the files of each section, and the number of runs, which must not overlap."""
    files = [_file(i, 0, low, high) for i, (low, high) in enumerate(case["files"])]
    sections = interval_partition(files)
    expected = {
        "sections": [sorted(map(list, section)) for section in case["expect_sections"]],
        "run_counts": list(case["expect_run_counts"]),
        "runs_overlap": False,
    }
    actual = {
        "sections": [sorted([file.min_key, file.max_key] for file in section.files) for section in sections],
        "run_counts": [len(section.runs) for section in sections],
        "runs_overlap": any(_overlaps(section) for section in sections),
    }
    return expected, actual


def run_compact_task(case: Case) -> tuple[Any, Any]:
    """Run a case of compact_task.jsonl: the files of the bucket after one unit, in level order."""
    files = [
        _file(i, given["level"], given["min"], given["max"], given.get("delete_rows", 0))
        for i, given in enumerate(case["files"])
    ]
    runs = sorted_runs(files)
    num_levels = level_count(files, case["num_levels"])
    chosen = case["unit"]["runs"]
    picked = runs if chosen == "all" else tuple(runs[i] for i in chosen)
    output_level = case["unit"]["output_level"]
    unit = CompactUnit(output_level, tuple(picked), full=len(picked) == len(runs))
    plan = plan_compaction(
        unit,
        max_level=num_levels - 1,
        min_file_size=case["min_file_size"],
        drop_delete=drops_deletes(output_level, runs),
    )
    expected: dict[str, Any] = {"files": [_shape(file) for file in case["expect"]]}
    actual: dict[str, Any] = {"files": _files_after(files, plan)}
    if case.get("drop_delete") is not None:
        expected["drop_delete"] = case["drop_delete"]
        actual["drop_delete"] = plan.drop_delete
    return expected, actual


RUNNERS = {"universal": run_universal, "interval": run_interval, "compact_task": run_compact_task}


def _pick_once(method: str, options: Mapping[str, Any], runs: tuple[SortedRun, ...]) -> CompactUnit | None:
    max_level = options["num_levels"] - 1
    if method == "size_amp":
        return pick_for_size_amplification(_policy(options), runs, max_level)
    if method == "size_ratio":
        return pick_for_size_ratio(_policy(options), runs, max_level)
    if method == "create_unit":
        return create_unit(runs, max_level, options["run_count"])
    if method in ("pick", "force_up_l0"):
        policy = _policy(options, force_up_level_0=method == "force_up_l0")
        return pick(policy, runs, options["num_levels"], 0, options.get("initial_last_full_ms"))
    raise ValueError(f"unknown method {method!r} of a universal case")


def _run_sequence(case: Case) -> tuple[Any, Any]:
    """Calls in order with the state of a strategy object: the last full compaction, and the picks without result."""
    options = case["options"]
    strategy = options["strategy"]
    policy = _policy(options, force_up_level_0=strategy == "force_up_l0")
    last_full_ms: int | None = options.get("initial_last_full_ms")
    in_vain = 0
    expected, actual = [], []
    for call in case["sequence"]:
        runs = _runs(call["runs"])
        now_ms = call.get("at_ms", 0)
        if strategy == "early_full":
            unit = pick_early_full(policy, runs, options["num_levels"], now_ms, last_full_ms)
        else:
            unit = pick(policy, runs, options["num_levels"], now_ms, last_full_ms, in_vain)
        if unit is not None and unit.full:
            last_full_ms = now_ms
        if policy.force_up_interval and (unit is None or unit.reason == "force-up-level-0"):
            in_vain = (in_vain + 1) % policy.force_up_interval
        expected.append(_expected_unit(call["expect"]))
        actual.append(_unit(unit))
    return expected, actual


def _policy(options: Mapping[str, Any], *, force_up_level_0: bool = False) -> CompactionPolicy:
    default = CompactionPolicy.from_options(TableOptions.parse({}), 0)
    interval = next((options[key] for key in _INTERVAL_KEYS if options.get(key) is not None), None)
    return replace(
        default,
        run_trigger=options.get("num_run_trigger", default.run_trigger),
        num_levels=options["num_levels"],
        max_size_amplification_percent=options.get("max_size_amp", default.max_size_amplification_percent),
        size_ratio=options.get("size_ratio", default.size_ratio),
        optimization_interval_ms=options.get("optimization_interval_ms"),
        total_size_threshold=options.get("total_size_threshold"),
        incremental_size_threshold=options.get("incremental_size_threshold"),
        force_up_level_0=force_up_level_0,
        force_up_interval=interval,
    )


_INTERVAL_KEYS = ("max_compact_interval", "max_interval", "lookup_compact_max_interval", "force_up_interval")


def _runs(given: Sequence[Mapping[str, int]]) -> tuple[SortedRun, ...]:
    return tuple(
        SortedRun(run["level"], (FileRange(i, run["level"], run["size"], 1, min_key=i, max_key=i, min_seq=0, max_seq=0),))
        for i, run in enumerate(given)
    )


def _file(index: int, level: int, low: int, high: int, delete_rows: int | None = 0) -> FileRange:
    return FileRange(
        index,
        level,
        high - low + 1,
        high - low + 1,
        min_key=low,
        max_key=high,
        min_seq=index,
        max_seq=index,
        delete_rows=delete_rows,
    )


def _unit(unit: CompactUnit | None) -> dict[str, Any]:
    if unit is None:
        return {"picked": None, "output_level": None}
    return {"picked": [file.index for file in unit.files], "output_level": unit.output_level}


def _expected_unit(expect: Mapping[str, Any]) -> dict[str, Any]:
    return {"picked": expect["picked"], "output_level": expect["output_level"]}


def _overlaps(section: Section) -> bool:
    return any(a.max_key >= b.min_key for run in section.runs for a, b in pairwise(run))


def _shape(file: Mapping[str, int]) -> list[int]:
    return [file["level"], file["min"], file["max"]]


def _files_after(files: Sequence[FileRange], plan: CompactPlan) -> list[list[int]]:
    """Return the bucket after the plan if each rewrite writes one file, as the upstream test does."""
    removed = {file.index for file in plan.upgrades} | {f.index for group in plan.rewrites for f in group.files}
    kept = [file for file in files if file.index not in removed]
    level = plan.output_level
    for file in plan.upgrades:
        kept.append(
            FileRange(
                file.index,
                level,
                file.size,
                1,
                min_key=file.min_key,
                max_key=file.max_key,
                min_seq=0,
                max_seq=file.max_seq,
            )
        )
    for group in plan.rewrites:
        low = min(file.min_key for file in group.files)
        high = max(file.max_key for file in group.files)
        newest = max(file.max_seq for file in group.files)
        kept.append(FileRange(-1, level, high - low + 1, 1, min_key=low, max_key=high, min_seq=0, max_seq=newest))
    return [[file.level, file.min_key, file.max_key] for run in sorted_runs(kept) for file in run.files]
