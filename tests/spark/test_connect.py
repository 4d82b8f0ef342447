"""Sessions of Spark Connect without a server: they send no request before they are used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession as ConnectSession

import lakelsm
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.lookup.service.query_service import QueryService
from lakelsm.spark.connect import (
    active_connect_session,
    as_active,
    check_same_session,
    has_ended,
    is_connect,
    is_connect_error,
    is_same_session,
)
from lakelsm.spark.session import checked_session

_PACKAGE = Path(lakelsm.__file__).parent
CLASSIC: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=object()))


@pytest.fixture
def sessions() -> Iterator[tuple[Any, Any]]:
    """Two sessions of a server that does not exist."""
    pair = [ConnectSession.builder.remote("sc://127.0.0.1:1/").create() for _ in range(2)]
    yield pair[0], pair[1]
    for each in pair:
        each.client._closed = True  # Nothing is to be released.
    ConnectSession._active_session.session = None
    ConnectSession._default_session = None


def test_sessions_frames_and_columns_of_connect_are_known_by_their_classes(sessions: tuple[Any, Any]) -> None:
    frame = sessions[0].range(3)
    assert [*map(is_connect, (sessions[0], frame, frame["id"]))] == [True] * 3
    assert [*map(is_connect, (CLASSIC, None, "sc://127.0.0.1"))] == [False] * 3
    assert checked_session(sessions[0]) is sessions[0]
    with pytest.raises(InvalidInputError, match="spark: expected a SparkSession, got an object of type"):
        checked_session(frame)


def test_the_active_session_is_that_of_the_thread_or_process(sessions: tuple[Any, Any]) -> None:
    assert active_connect_session() in sessions
    ConnectSession._active_session.session = None
    ConnectSession._default_session = None
    assert active_connect_session() is None


def test_a_session_is_active_within_a_block(sessions: tuple[Any, Any]) -> None:
    before = ConnectSession.getActiveSession()
    for session in sessions:
        with as_active(session):
            assert ConnectSession.getActiveSession() is session
        assert ConnectSession.getActiveSession() is before
    with as_active(CLASSIC):
        assert ConnectSession.getActiveSession() is before


def test_a_session_that_was_stopped_has_ended(sessions: tuple[Any, Any]) -> None:
    assert not has_ended(sessions[0])
    sessions[0].client._closed = True
    assert has_ended(sessions[0])
    assert [has_ended(CLASSIC), has_ended(SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None)))] == [False, True]  # type: ignore[arg-type]


def test_frames_can_be_used_together_within_a_session_or_a_jvm(sessions: tuple[Any, Any]) -> None:
    one, other = sessions
    assert [is_same_session(one, one), is_same_session(one, other), is_same_session(one, CLASSIC)] == [True, False, False]
    assert is_same_session(CLASSIC, SimpleNamespace())  # type: ignore[arg-type]
    check_same_session("frame", one.range(1), one)
    with pytest.raises(InvalidInputError, match=r"source: the DataFrame belongs to another Spark session .*spark=…"):
        check_same_session("source", one.range(1), other)


def test_a_query_service_in_tasks_is_refused(sessions: tuple[Any, Any]) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"Spark Connect: a query service .* Use engine 'local'\."):
        QueryService(SimpleNamespace(), sessions[0])  # type: ignore[arg-type]


def test_errors_of_a_server_are_known_by_their_classes() -> None:
    from pyspark.errors import AnalysisException
    from pyspark.errors.exceptions.connect import AnalysisException as OfServer

    assert [is_connect_error(OfServer("x")), is_connect_error(AnalysisException("x"))] == [True, False]


#: Modules of the query service in tasks, which `QueryService` refuses on Spark Connect.
_OF_THE_QUERY_SERVICE = {"lookup/service/servers.py", "spark/barrier_stage.py", "spark/jvm_signals.py"}


def test_modules_that_use_the_jvm_know_the_kind_of_the_session() -> None:
    texts = {str(path.relative_to(_PACKAGE)): path.read_text(encoding="utf-8") for path in _PACKAGE.rglob("*.py")}
    using = {name for name, text in texts.items() if re.search(r"\b_j(vm|df|sc|c|sparkSession)\b|\bsparkContext\b", text)}
    unaware = {name for name in using if not re.search(r"\b(is_connect|has_ended)\b", texts[name])}
    assert unaware <= _OF_THE_QUERY_SERVICE < {*texts} and "frames/frame_writer.py" in using


def test_functions_of_columns_are_those_of_the_session_in_every_module() -> None:
    direct = re.compile(r"pyspark\.sql\.functions|from pyspark\.sql import .*\bfunctions\b")
    texts = {str(path.relative_to(_PACKAGE)): path.read_text(encoding="utf-8") for path in _PACKAGE.rglob("*.py")}
    assert {name for name, text in texts.items() if direct.search(text)} == {"spark/functions.py"}
