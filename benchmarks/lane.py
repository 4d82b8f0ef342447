"""A lane is a separate process: ``python -m benchmarks.LANE CONFIG.json OUT.json`` measures and writes its results."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.config import BenchConfig
from benchmarks.timing import Measurement, use_cores


def run_lane(run: Callable[[BenchConfig], Sequence[Measurement]], argv: Sequence[str]) -> int:
    """Measure with the configuration in the first file, and write the results to the second one."""
    config = BenchConfig.from_json(Path(argv[0]).read_text(encoding="utf-8"))
    use_cores(config.cores)
    Path(argv[1]).write_text(json.dumps([result.to_dict() for result in run(config)]), encoding="utf-8")
    return 0
