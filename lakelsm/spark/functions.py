"""Spark's functions of columns, for the kind of session that a call uses.

PySpark has two implementations of each function, for classic and for Connect sessions. `pyspark.sql.functions` chooses
one for the whole process, by an environment variable that the builder of a Connect session sets. A process may have
sessions of both kinds, and `DatabricksSession` or the session's own class need not set the variable. Therefore each call
that builds expressions chooses by the session or DataFrame that it gets (`of_session`). There is no default, so that a
call which does not choose fails on sessions of both kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pyspark.errors import PySparkException

from lakelsm.spark.connect import is_connect, raise_lost_server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.functions import *  # noqa: F403

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_CLASSIC, _CONNECT = "pyspark.sql.functions", "pyspark.sql.connect.functions"
_module: ContextVar[str] = ContextVar("module")


def __getattr__(name: str) -> Any:
    """Return a function of the implementation that the current call uses."""
    chosen = _module.get(None)
    if chosen is None:
        raise AttributeError(f"{name}: no call has chosen the kind of session")
    module: ModuleType = import_module(chosen)
    return getattr(module, name)


@contextmanager
def functions_of(owner: SparkSession | DataFrame) -> Iterator[None]:
    """Use the functions for the kind of a session or DataFrame within the block.

    The loss of a Connect server is raised as SparkUnavailableError.
    """
    chosen = _module.set(_CONNECT if is_connect(owner) else _CLASSIC)
    try:
        yield
    except PySparkException as error:
        raise_lost_server(error)
        raise
    finally:
        _module.reset(chosen)


def of_session(call: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a function use the functions for the kind of its first argument, a session or a DataFrame."""

    @wraps(call)
    def chosen(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        owner: Any = args[0]
        with functions_of(owner):
            return call(*args, **kwargs)

    return chosen
