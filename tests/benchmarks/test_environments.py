"""The peers' environments: each is created once for its requirements, and a failure is reported for its peer only."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from benchmarks import environments
from benchmarks.environments import PEERS, install_peers


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    made: list[tuple[str, ...]] = []

    def install(home: Path, python: Path, requirements: tuple[str, ...]) -> str:
        made.append(requirements)
        home.mkdir(parents=True, exist_ok=True)
        return "chdb==4.* cannot be installed: unknown version" if home.name == "chdb" else ""

    monkeypatch.setattr(environments, "_install", install)
    return made


def test_an_environment_is_created_once_and_shared(tmp_path: Path, installed: list[tuple[str, ...]]) -> None:
    for _ in range(2):
        pythons, failed = install_peers(tmp_path, ["paimon_java", "paimon_spark"])
        assert (set(pythons), failed) == ({"paimon_java", "paimon_spark"}, {})
        assert set(pythons.values()) == {str(tmp_path / "spark35" / "bin" / "python")}
    assert installed == [("pyspark==3.5.*",)]


def test_an_environment_of_other_requirements_is_replaced(tmp_path: Path, installed: list[tuple[str, ...]]) -> None:
    install_peers(tmp_path, ["duckdb"])
    (tmp_path / "duckdb" / "installed").write_text("duckdb==1.*", encoding="utf-8")
    install_peers(tmp_path, ["duckdb"])
    assert installed == [PEERS["duckdb"].requirements] * 2


def test_a_failed_installation_does_not_stop_other_peers(tmp_path: Path, installed: list[tuple[str, ...]]) -> None:
    pythons, failed = install_peers(tmp_path, ["chdb", "deltalake"])
    assert set(pythons) == {"deltalake"}
    assert failed == {"chdb": "chdb==4.* cannot be installed: unknown version"}
    assert len(installed) == 2


def test_every_peer_has_a_module() -> None:
    assert all(importlib.util.find_spec(f"benchmarks.peers.{name}") for name in PEERS)
