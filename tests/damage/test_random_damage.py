"""Random damage to files of every kind: the right rows or a typed error, never other rows, other errors or a hang."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.chance import FUZZ_EXAMPLES, seeds
from tests.damage.samples import SAMPLES, build
from tests.damage.trial import prepare, run

#: Seeds of trials; `make fuzz` uses other and more seeds.
_TRIALS = seeds(16, FUZZ_EXAMPLES)


@pytest.mark.property
def test_a_damaged_table_gives_the_right_rows_or_a_typed_error(tmp_path: Path) -> None:
    samples = [prepare(tmp_path, name, build) for name in SAMPLES]
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for number in _TRIALS:
        done, findings = run(samples[number % len(samples)], tmp_path, Random(number))
        counts.update(finding.verdict for finding in findings)
        for finding in findings:
            if finding.verdict not in ("right", "refused"):
                faults.append(f"trial {number}, {done}: {finding.verdict} {finding.step}: {finding.said[:300]}")
    print(f"{len(_TRIALS)} damaged tables: {dict(counts)}")
    assert not faults, "\n".join(faults)
    assert counts["refused"] and counts["right"]
