"""Sound tables, whoever wrote them: a check finds nothing in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.maintain.check.table_check import CheckScope, check_table
from lakelsm.maintenance_results import CheckResult
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.snapshots.table_store import TableStore
from tests.damage.samples import SAMPLES, build
from tests.golden_tables import GoldenTable
from tests.interop.test_java_golden import SUPPORTED


def found_in(root: Path, **scope: Any) -> CheckResult:
    return check_table(TableStore.open(str(root)), CheckScope(data=CheckedData.FULL, **scope), LocalRunner())


@pytest.mark.parametrize(("name", "version"), SUPPORTED)
def test_nothing_is_found_in_tables_of_java(golden: Callable[..., GoldenTable], name: str, version: str) -> None:
    result = found_in(golden(name, version).path)
    assert not result.findings and result.files, result.as_text()


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_is_found_in_tables_of_every_kind_of_file(tmp_path: Path, name: str) -> None:
    build(tmp_path / "t", SAMPLES[name])
    result = found_in(tmp_path / "t")
    assert not result.findings and result.files, result.as_text()
