"""Which session is used, and what is said where none can be had."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog
from lakelsm.spark import session as session_module
from lakelsm.spark.session import SparkUnavailableError, resolve_session

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))


def java(monkeypatch: pytest.MonkeyPatch, directory: Path, version_text: str) -> None:
    """A JAVA_HOME whose ``java -version`` prints the text to stderr, as Java does."""
    binary = directory / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\ncat >&2 <<END\n" + version_text + "\nEND\n", encoding="utf-8")
    binary.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(directory))


def test_without_java_the_error_names_what_to_install(no_session: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SparkUnavailableError, match=r"Java.*17.*apt-get install openjdk-17.*JAVA_HOME"):
        resolve_session()


def test_a_java_home_without_java_is_no_java(no_session: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match="17"):
        resolve_session()


@pytest.mark.parametrize(
    ("text", "version"),
    [('openjdk version "11.0.22" 2024-01-16', "11"), ('java version "1.8.0_292"', "8")],
)
def test_an_old_java_is_refused_with_its_version(
    no_session: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, version: str
) -> None:
    java(monkeypatch, tmp_path / "jdk", text)
    with pytest.raises(SparkUnavailableError, match=rf"version {version}\b.*openjdk-17"):
        resolve_session()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.10" 2024-01-16', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("Picked up JAVA_TOOL_OPTIONS: -Dx", None),
        ("", None),
        ('openjdk version "unknown"', None),
    ],
)
def test_the_major_version_is_read_from_javas_own_words(text: str, version: int | None) -> None:
    assert session_module._major_version(text) == version


def test_java_whose_version_is_not_understood_is_tried(
    no_session: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java(monkeypatch, tmp_path / "jdk", "who knows")
    started: list[str] = []

    class Builder:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            def call(*args: Any) -> Any:
                started.append(name)
                return Session() if name == "getOrCreate" else self

            return call

    class Session:
        sparkContext = SimpleNamespace(_jsc=object(), master="yarn", _python_includes=[])

    monkeypatch.setattr(SparkSession, "builder", Builder())
    assert isinstance(resolve_session(), Session)
    assert started[-1] == "getOrCreate"


def test_the_session_given_comes_before_the_active_one(spark: SparkSession) -> None:
    other = spark.newSession()
    assert resolve_session(other) is other
    assert resolve_session() is SparkSession.getActiveSession()


def test_a_catalog_without_a_session_uses_the_active_one(spark: SparkSession, tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table("db.t", "id INT", primary_key=["id"], options={"bucket": "1"})
    assert table.spark is SparkSession.getActiveSession()


def test_opening_and_planning_need_no_session(no_session: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a session was asked for")

    monkeypatch.setattr(session_module, "_require_java", refuse)
    monkeypatch.setattr(subprocess, "run", refuse)
    table = Catalog(str(tmp_path)).create_table("db.t", "id INT", primary_key=["id"], options={"bucket": "1"})
    assert table.plan().files_live == 0
    assert table.schema.primary_keys == ("id",)
