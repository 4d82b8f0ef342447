"""Errors: each says by its kind what the caller must do, also when it comes out of a task."""

from __future__ import annotations

import inspect

import pytest

import lakelsm
from lakelsm import errors
from lakelsm.errors import ErrorKind, LakelsmError, told_of
from lakelsm.spark.task_errors import error_text, lakelsm_error

KINDS = {
    "InvalidInputError": ErrorKind.FIX,
    "TableNotFoundError": ErrorKind.FIX,
    "TableAlreadyExistsError": ErrorKind.FIX,
    "SnapshotNotFoundError": ErrorKind.FIX,
    "BatchHistoryExpiredError": ErrorKind.FIX,
    "StorageError": ErrorKind.FIX,
    "StorageUnavailableError": ErrorKind.RETRY,
    "OutOfMemoryError": ErrorKind.FIX,
    "SparkUnavailableError": ErrorKind.FIX,
    "CommitConflictError": ErrorKind.RETRY,
    "SequenceConflictError": ErrorKind.RETRY,
    "BucketAssignConflictError": ErrorKind.RETRY,
    "RowsChangedError": ErrorKind.RETRY,
    "VectorsChangedError": ErrorKind.RETRY,
    "CorruptTableError": ErrorKind.CORRUPT,
    "CorruptStoreError": ErrorKind.CORRUPT,
    "LookupServiceError": ErrorKind.RETRY,
    "LookupServiceSetupError": ErrorKind.FIX,
    "UnsupportedFeatureError": ErrorKind.UNSUPPORTED,
    "CommitOutcomeUnknownError": ErrorKind.UNKNOWN,
}


def subclasses(kind: type[LakelsmError]) -> set[type[LakelsmError]]:
    below = set(kind.__subclasses__())
    return below.union(*map(subclasses, below))


def test_every_error_is_of_this_module_and_exported_and_has_its_kind() -> None:
    found = {error.__name__: error for error in subclasses(LakelsmError)}
    assert {name: error.kind for name, error in found.items()} == KINDS
    assert [name for name, error in found.items() if error.__module__ != errors.__name__] == []
    assert lakelsm.LakelsmError is LakelsmError


def test_the_kinds_are_texts_that_stay() -> None:
    assert [kind.value for kind in ErrorKind] == ["retry", "fix", "corrupt", "unsupported", "unknown"]
    assert set(KINDS.values()) == set(ErrorKind)


@pytest.mark.parametrize("name", KINDS)
def test_an_error_of_a_task_keeps_its_class_and_kind_on_the_way_to_the_driver(name: str) -> None:
    error = getattr(errors, name)("Table d.t: what is wrong")
    arrived = lakelsm_error(f"pyspark.errors.PythonException: Traceback\n{error_text(error)}\n\n\tat x", "/wh/d.db/t")
    assert (type(arrived), str(arrived)) == (type(error), str(error))
    assert arrived is not None and arrived.kind is KINDS[name]


@pytest.mark.parametrize("name", KINDS)
def test_an_error_is_told_of_what_it_is_about_and_keeps_its_class(name: str) -> None:
    with pytest.raises(getattr(errors, name)) as raised, told_of("Table d.t"):
        raise getattr(errors, name)("option 'bucket' = 'x'")
    assert str(raised.value) == "Table d.t: option 'bucket' = 'x'"
    assert raised.value.kind is KINDS[name] and str(raised.value.__cause__) == "option 'bucket' = 'x'"


def test_an_error_that_is_not_lakelsms_passes_as_it_is() -> None:
    with pytest.raises(KeyError, match="'x'"), told_of("Table d.t"):
        raise KeyError("x")


def test_every_error_says_what_it_means() -> None:
    assert [name for name in KINDS if not inspect.getdoc(getattr(errors, name))] == []
