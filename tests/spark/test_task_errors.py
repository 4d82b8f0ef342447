"""The text of a failed job becomes an error of lakelsm, from its own texts and known ones of Spark."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from lakelsm.errors import InvalidInputError, LakelsmError, SparkUnavailableError, StorageError, UnsupportedFeatureError
from lakelsm.spark.task_errors import error_text, first_line, lakelsm_error, translated_errors


def test_texts_of_task_failures_become_their_errors() -> None:
    root = "/wh/db.db/t"
    raised = "Traceback\nlakelsm.errors.CorruptTableError: old\n\nTraceback\nlakelsm.errors.SnapshotNotFoundError: new\n"
    assert repr(lakelsm_error(raised, root)) == "SnapshotNotFoundError('new')"
    assert isinstance(
        lakelsm_error("[USER_RAISED_EXCEPTION] lakelsm: key column 'k' is NULL SQLSTATE: P0001", root),
        InvalidInputError,
    )
    missing = "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file://{}. File does not exist. It"
    assert "/wh/db.db/t/a b/data-1.parquet is missing" in str(
        lakelsm_error(missing.format("/wh/db.db/t/a b/data-1.parquet"), root)
    )
    for other in (missing.format("/wh/db.db/t2/x"), "lakelsm.errors.Nonsense: x", "ValueError: lakelsm", ""):
        assert lakelsm_error(other, root) is None


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):\n  ...\nModuleNotFoundError: No module named 'lakelsm'\n\n\tat org.apache",
        "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9",
    ],
)
def test_a_task_in_another_python_is_an_error_of_one_line(text: str) -> None:
    error = lakelsm_error(text, "/wh/db.db/t")
    assert isinstance(error, SparkUnavailableError)
    assert "PYSPARK_PYTHON" in str(error) and "spark.pyspark.python" in str(error) and "\n" not in str(error)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[CAST_INVALID_INPUT] The value 'x' is wrong. SQLSTATE: 22018\n== SQL ==\nCAST(v AS INT)", "The value 'x'"),
        ("o1.collect\n: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Zero. SQLSTATE: 22012", "Zero."),
        ("[USER_RAISED_EXCEPTION] my own check SQLSTATE: P0001", "my own check"),
        ("[INVALID_FORMAT.ESC_AT_THE_END] The format is invalid: 'a'. SQLSTATE: 42601", "The format is invalid"),
        ("java.util.regex.PatternSyntaxException: Unclosed group near index 1\n(\n\tat java.base", "Unclosed group"),
    ],
)
def test_an_expression_of_the_user_that_fails_on_a_row_is_an_input_error_of_one_line(text: str, reason: str) -> None:
    error = lakelsm_error(text, "/wh/db.db/t")
    assert isinstance(error, InvalidInputError)
    assert reason in str(error) and "\n" not in str(error) and "SQLSTATE" not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "[OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008",
        "o1.collect\n: org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 3 cancelled SQLSTATE: XXKDA\n\tat org",
    ],
)
def test_a_cancelled_job_is_an_error_of_one_line(text: str) -> None:
    error = lakelsm_error(text, "/wh/db.db/t")
    assert isinstance(error, SparkUnavailableError)
    assert "Spark has cancelled the job" in str(error) and "\n" not in str(error)


def test_a_missing_module_of_the_user_is_not_converted() -> None:
    assert lakelsm_error("ModuleNotFoundError: No module named 'lakes'", "/wh/db.db/t") is None


@pytest.mark.parametrize("reason", ["No space left on device", "Disk quota exceeded"])
def test_the_error_of_a_full_disk_names_sparks_directory(reason: str) -> None:
    text = f"org.apache.spark.SparkException: Job aborted.\n\tat a.b\nCaused by: java.io.IOException: {reason}\n"
    error = lakelsm_error(text, "/warehouse/d.db/t")
    assert isinstance(error, StorageError)
    assert reason in str(error) and "spark.local.dir" in str(error)


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        ("java.io.FileNotFoundException: /wh/db.db/t/bucket-0/data-1.parquet (Permission denied)", "fix"),
        ("java.io.FileNotFoundException: /wh/db.db/t/bucket-0/data-1.parquet (Too many open files)", "fix"),
        ("com.x.S3Exception: s3a://b/t/data-1.parquet: open: Slow down (Status Code: 503)", "retry"),
        ("com.x.S3Exception: s3a://b/t/data-1.parquet: open: Forbidden (Status Code: 403)", "fix"),
        ("java.io.FileNotFoundException: /wh/db.db/t/bucket-0/data-1.parquet (No such file or directory)", "corrupt"),
        ("java.lang.RuntimeException: data-1.parquet is not a Parquet file", "corrupt"),
    ],
)
def test_a_file_that_the_system_or_store_refuses_is_not_called_damaged(cause: str, kind: str) -> None:
    file = "file:///wh/db.db/t/bucket-0/data-1.parquet"
    text = f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {file}.  SQLSTATE: KD001\nCaused by: {cause}"
    error = lakelsm_error(text, "/wh/db.db/t")
    assert error is not None and error.kind.value == kind


@pytest.mark.parametrize("error", [StorageError("full"), UnsupportedFeatureError("two\n  lines: of 'text'")], ids=repr)
def test_an_error_passed_as_text_is_recognised(error: LakelsmError) -> None:
    text = error_text(error)
    assert "\n" not in text
    for around in (text, f"[USER_RAISED_EXCEPTION] {text} SQLSTATE: P0001", f"Traceback\n  File\n{text}\n\n\tat org"):
        found = lakelsm_error(around, "/t")
        assert type(found) is type(error)
        assert str(found) == " ".join(str(error).split())


def test_known_failures_of_an_action_are_converted_and_others_unchanged() -> None:
    with pytest.raises(StorageError, match="full") as caught, translated_errors("/t"):
        raise PySparkException("lakelsm.errors.StorageError: full")
    assert isinstance(caught.value.__cause__, PySparkException)
    for error in (PySparkException("who knows"), ValueError("lakelsm.errors.StorageError: full")):
        with pytest.raises(type(error)) as passed, translated_errors("/t"):
            raise error
        assert passed.value is error


@pytest.mark.parametrize(
    "lost",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o45.collectToPython"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
    ids=["no answer", "the call fails", "no connection"],
)
def test_a_lost_jvm_is_one_error_with_the_remedy(lost: Exception) -> None:
    ended = pytest.raises(SparkUnavailableError, match=r"JVM has ended.*a new session")
    with ended as caught, translated_errors("/t"):
        raise lost
    assert caught.value.__cause__ is lost
    other = Py4JError("An error occurred while calling o45.f. Trace:\npy4j.Py4JException: Method f([]) does not exist")
    with pytest.raises(Py4JError, match="does not exist"), translated_errors("/t"):
        raise other


def test_a_table_with_a_slash_at_its_end_is_the_same_and_its_neighbour_is_not() -> None:
    text = "[PATH_NOT_FOUND] Path does not exist: file:/wh/t/bucket-0/x.parquet. SQLSTATE: 42K03"
    for root, known in (("/wh/t", True), ("/wh/t/", True), ("/wh/t/bucket", False)):
        assert (lakelsm_error(text, root) is not None) is known


def test_the_first_line_leaves_out_the_plan() -> None:
    error = PySparkException("[UNRESOLVED] no such column.\n'Project\n+- Relation")
    assert first_line(error) == "[UNRESOLVED] no such column."


def test_the_first_line_of_a_syntax_error_is_not_its_blank_one() -> None:
    assert first_line(PySparkException("\n[PARSE_SYNTAX_ERROR] at 'n'.\n\n== SQL ==\nn n n")) == (
        "[PARSE_SYNTAX_ERROR] at 'n'."
    )


@pytest.mark.parametrize(("status", "kind"), [("403", "StorageError"), ("503", "StorageUnavailableError")])
def test_an_error_of_the_store_to_the_connector_has_its_kind(status: str, kind: str) -> None:
    text = f"java.nio.file.AccessDeniedException: s3a://b/w/d.db/t/x.parquet: getFileStatus (Status Code: {status}; X)"
    error = lakelsm_error(text, "s3://b/w/d.db/t")
    assert type(error).__name__ == kind and f"({status})" in str(error)
