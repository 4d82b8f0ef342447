"""Damaged data files are read by Spark: the right rows, or an error that names the file and its fault."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakelsm.errors import CorruptTableError
from lakelsm.table import Table
from tests.chance import FUZZ_EXAMPLES, seeds
from tests.damage.damages import DAMAGES, flip_bit
from tests.damage.samples import SampleTable, batch, build

#: Seeds of trials; `make fuzz` uses other and more seeds.
_TRIALS = seeds(8, max(8, FUZZ_EXAMPLES // 20))

#: Files that Spark scans natively, and files that tasks read.
_OPTIONS: tuple[Mapping[str, str], ...] = (
    {"bucket": "2", "source__split__open_file_cost": "1 b"},
    {"bucket": "1", "merge_engine": "partial-update"},
)


def verdict(table: Table, file: Path, expected: list[str]) -> str:
    """Return the outcome of a read of a table with a damaged file."""
    try:
        rows = sorted(repr(tuple(row)) for row in table.read().collect())
    except CorruptTableError as error:
        return "refused" if str(file) in str(error) else f"another file is named: {error}"
    except PySparkException as error:
        first = str(error).splitlines()[0]
        return "refused" if "lakelsm.errors.CorruptTableError" in first and str(file) in first else f"untyped: {first}"
    except Py4JJavaError as error:
        # Damage that Spark's own reader finds has Spark's message: no expression comes between. If several stages
        # fail at the same time, Spark's message begins with their number.
        said = str(error)
        is_reported = "FAILED_READ_FILE" in said or "lakelsm.errors.CorruptTableError" in said
        return "refused" if is_reported and str(file) in said else f"untyped: {said}"
    return "right" if rows == expected else f"silent: {rows}"


@pytest.mark.property
def test_a_damaged_data_file_gives_no_wrong_rows(spark: SparkSession, tmp_path: Path) -> None:
    tables: list[SampleTable] = []
    for number, options in enumerate(_OPTIONS):
        tables.append(build(tmp_path / str(number), options))
        tables[-1].append(batch(40, 9, "f", (4,)))
    answers = [sorted(repr(tuple(r)) for r in Table.for_path(str(t.root)).read().collect()) for t in tables]
    verdicts: list[str] = []
    for number in _TRIALS:
        chance = Random(number)
        at = number % len(tables)
        table = tables[at]
        file = table.path_of(chance.choice(table.live()))
        data = file.read_bytes()
        others = [other.read_bytes() for other in sorted(table.root.rglob("data-*")) if other != file]
        damaged = (flip_bit if number % 2 else chance.choice(DAMAGES))(data, others, chance)
        file.unlink()
        if damaged is not None:
            file.write_bytes(damaged)
        verdicts.append(verdict(Table.for_path(str(table.root)), file, answers[at]))
        file.write_bytes(data)
    assert set(verdicts) <= {"right", "refused"}, verdicts
    assert "refused" in verdicts
