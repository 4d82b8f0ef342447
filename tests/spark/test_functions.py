"""The choice of the implementation of Spark's functions, without a JVM and without a server."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkConnectException, SparkConnectGrpcException
from pyspark.sql.connect.session import SparkSession as ConnectSession

from lakelsm.errors import SparkUnavailableError
from lakelsm.spark import functions as F
from lakelsm.spark.functions import functions_of, of_session

LOST = "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n>"


def connect_session() -> Any:
    session = ConnectSession.builder.remote("sc://127.0.0.1:1/").create()
    session.client._closed = True
    ConnectSession._active_session.session = None
    ConnectSession._default_session = None
    return session


def test_functions_are_those_of_the_session_within_a_call_and_none_outside() -> None:
    session = connect_session()

    @of_session
    def inner(owner: object) -> str:
        return F.lit.__module__

    @of_session
    def outer(owner: object, other: object) -> list[str]:
        return [F.lit.__module__, inner(other), F.lit.__module__]

    @of_session
    def unknown(owner: object) -> object:
        return F.no_such_function

    classic, connect = "pyspark.sql.functions.builtin", "pyspark.sql.connect.functions.builtin"
    assert outer(session, object()) == [connect, classic, connect]
    assert outer(object(), session) == [classic, connect, classic]
    assert (inner.__name__, inner(session.range(1))) == ("inner", connect)
    with pytest.raises(AttributeError, match="no_such_function"):
        unknown(session)
    with pytest.raises(AttributeError, match="lit: no call has chosen the kind of session"):
        _ = F.lit


def test_after_an_error_the_functions_are_those_of_before() -> None:
    with functions_of(object()):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="x"), functions_of(connect_session()):
            raise ValueError("x")
        assert F.lit.__module__ == "pyspark.sql.functions.builtin"


@pytest.mark.parametrize(
    "error",
    [
        SparkConnectGrpcException(LOST),
        SparkConnectException(errorClass="NO_ACTIVE_SESSION", messageParameters={}),
        SparkConnectGrpcException("[INVALID_HANDLE.SESSION_CLOSED] x", errorClass="INVALID_HANDLE.SESSION_CLOSED"),
        SparkConnectGrpcException(LOST.replace("UNAVAILABLE", "RESOURCE_EXHAUSTED")),
    ],
    ids=["no server", "a stopped session", "a session that the server has closed", "a plan that is too large"],
)
def test_a_lost_server_or_session_is_one_error(error: PySparkException) -> None:
    message = "The Spark Connect server does not answer, refuses the call, or has ended the session"
    with pytest.raises(SparkUnavailableError, match=message), functions_of(connect_session()):
        raise error


def test_other_errors_of_spark_are_unchanged() -> None:
    error = SparkConnectGrpcException("[DIVIDE_BY_ZERO] StatusCode", errorClass="DIVIDE_BY_ZERO")
    with pytest.raises(SparkConnectGrpcException) as raised, functions_of(connect_session()):
        raise error
    assert raised.value is error
