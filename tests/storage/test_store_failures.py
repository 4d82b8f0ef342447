"""Failures of a store become errors with the URI, the reason and the remedy, and without credentials."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from lakelsm import Catalog
from lakelsm.arguments import option_texts
from lakelsm.environment import SYSTEM
from lakelsm.errors import (
    ErrorKind,
    InvalidInputError,
    LakelsmError,
    StorageError,
    StorageUnavailableError,
)
from lakelsm.snapshots.json_file import publish
from lakelsm.storage import FileIO, object_client, object_store, open_storage
from lakelsm.storage.store_failures import retry_waits
from tests.storage.object_server import ObjectServer, opened

SECRETS = ("test-access", "test-secret", "AKIASECRET")
ANSWER = b"<Error><Code>%s</Code><AWSAccessKeyId>AKIASECRET</AWSAccessKeyId><X>test-access</X></Error>"


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        ("403 Forbidden", b"InvalidAccessKeyId", "does not accept the credentials .403 Inv.*storage_options"),
        ("403 Forbidden", b"SignatureDoesNotMatch", "does not accept the credentials"),
        ("401 Unauthorized", b"No", "does not accept the credentials"),
        ("403 Forbidden", b"AccessDenied", "denies access .403 AccessDenied.*permission"),
        ("404 Not Found", b"NoSuchBucket", "bucket or container .bucket-.* does not exist .*Create it, or fix the name"),
        ("400 Bad Request", b"AuthorizationHeaderMalformed", "answers with an error .400 AuthorizationHeaderMalformed"),
    ],
)
def test_each_answer_is_one_clear_error(object_server: ObjectServer, status: str, code: bytes, words: str) -> None:
    root = object_server.new_bucket()
    catalog = Catalog(f"{root}/w", storage_options=object_server.options)
    answer: dict[str, Any] = {"status": status, "body": ANSWER % code, "times": 100}
    with object_server.fault("refuse", lambda *_: True, **answer):
        for call in (
            lambda: catalog.create_table("d.t", "id INT", primary_key=["id"]),
            catalog.list_databases,
            lambda: catalog.table("d.t"),
        ):
            with pytest.raises(LakelsmError, match=words) as raised:
                call()
            assert root in str(raised.value)
            shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value.__context__)
            assert not [secret for secret in SECRETS if secret in shown]


def test_a_request_is_retried_through_several_refusals(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    with object_server.fault("refuse", lambda *_: True, times=3) as fault:
        file_io.write(f"{root}/a", b"1")
    assert fault.met == 3 and file_io.read(f"{root}/a") == b"1"


def test_a_request_with_a_truncated_answer_is_sent_again(object_server: ObjectServer) -> None:
    file_io, root = opened(object_server)
    file_io.write(f"{root}/a", b"0123456789" * 1000)
    with object_server.fault("truncate", lambda method, _: method == "GET") as fault:
        assert file_io.read(f"{root}/a") == b"0123456789" * 1000
    assert fault.met == 1


@pytest.mark.parametrize(
    ("uri", "given"),
    [
        ("abfss://c@account/x", {"azure.account.key": "secretword not base64"}),
        ("gs://b/x", {"gs.auth.service.account.json": "secretword"}),
    ],
)
def test_settings_of_a_wrong_form_are_reported_by_name_only(uri: str, given: dict[str, str]) -> None:
    file_io, root = open_storage(uri, given)
    for call in (lambda: file_io.read(f"{root}/a"), lambda: file_io.create_if_absent(f"{root}/a", b"")):
        with pytest.raises(LakelsmError) as raised:
            call()
        shown = "".join(traceback.format_exception(raised.value))
        assert root.removesuffix("/x") in shown and "secretword" not in shown


@dataclass
class Waits:
    """Records the waits between requests, which take no time here."""

    seconds: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def monotonic(self) -> float:
        return sum(self.seconds)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Waits]:
    """Make all waits between requests, also the library's, take no time. A store may be silent for a minute, or for
    the parameter's number of milliseconds.
    """
    silence = timedelta(milliseconds=getattr(request, "param", 60_000))
    found = Waits()
    quick = {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=2), "base": 2}
    environment = replace(SYSTEM, sleep=found.sleep, monotonic=found.monotonic, chance=lambda: 0.5)
    with monkeypatch.context() as patched:
        patched.setattr(object_client, "SYSTEM", environment)
        patched.setattr(object_client, "_RETRY", {**object_client._RETRY, "backoff": quick})
        patched.setattr(object_client, "_READ_TIMEOUT", {"read_timeout": silence})
        object_client._opened_store.cache_clear()
        yield found
    object_client._opened_store.cache_clear()


CONTENT = b"0123456789" * 1000

#: Requests to a store, each returning its result.
REQUESTS: dict[str, Callable[[FileIO, str], object]] = {
    "GET": lambda file_io, root: file_io.read(f"{root}/a"),
    "GET of nothing": lambda file_io, root: _missing(file_io, f"{root}/none"),
    "range": lambda file_io, root: _opened(file_io, f"{root}/long").read_at(10, 20),
    "HEAD": lambda file_io, root: file_io.size(f"{root}/a"),
    "LIST": lambda file_io, root: sorted(file_io.list(root)),
    "PUT": lambda file_io, root: file_io.write(f"{root}/a", CONTENT),
    "parts": lambda file_io, root: _written(file_io, f"{root}/parts", 20 << 20),
    "small file": lambda file_io, root: _written(file_io, f"{root}/small", 1000),
    "DELETE": lambda file_io, root: file_io.delete(f"{root}/missing"),
    "bulk": lambda file_io, root: file_io.delete_files([f"{root}/missing", f"{root}/missing too"]),
    "below": lambda file_io, root: file_io.delete_dir(f"{root}/nowhere"),
}


def _missing(file_io: FileIO, path: str) -> str:
    with pytest.raises(FileNotFoundError):
        file_io.read(path)
    return "missing"


def _opened(file_io: FileIO, path: str) -> Any:
    return file_io.filesystem().open_input_file(path)


def _written(file_io: FileIO, path: str, size: int) -> None:
    with file_io.filesystem().open_output_stream(path) as sink:
        for start in range(0, size, 1 << 20):
            sink.write(bytes(min(size - start, 1 << 20)))


#: Temporary faults.
TEMPORARY: list[tuple[str, dict[str, Any]]] = [
    *(("refuse", {"status": status}) for status in ("500 Internal Server Error", "502 Bad Gateway", "503 Slow Down")),
    ("refuse", {"status": "429 Too Many Requests", "body": b""}),
    ("refuse", {"status": "400 Bad Request", "body": b"<Error><Code>RequestTimeout</Code></Error>"}),
    ("cut", {"status": "503 Slow Down"}),
    ("cut", {"status": "404 Not Found", "body": b"<Error><Code>NoSuchKey</Code></Error>"}),
    ("truncate", {}),
    ("reset", {}),
    ("drop before", {}),
    ("drop", {}),
]
#: Faults after which the library cannot repeat a part of a file, because it does not see the cause.
_OF_PARTS = ("cut", "truncate")


@pytest.fixture
def bucket(object_server: ObjectServer, waited: Waits) -> tuple[FileIO, str]:
    file_io, root = opened(object_server)
    file_io.write(f"{root}/a", CONTENT)
    file_io.write(f"{root}/long", bytes(3 << 20))
    return file_io.uncached(), root


def test_each_request_that_is_sent_again_logs_a_line_without_secrets(
    object_server: ObjectServer, waited: Waits, bucket: tuple[FileIO, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG", "lakelsm"), object_server.fault("refuse", lambda *_: True, times=2):
        bucket[0].exists(f"{bucket[1]}/small")
    found = [each for each in caplog.records if each.name == "lakelsm.storage"]
    assert len(found) == 2 and all("small: the request is sent again in" in each.getMessage() for each in found)
    assert "test-secret" not in str([vars(each) for each in found])


def test_a_request_that_fails_temporarily_is_sent_again(
    object_server: ObjectServer, waited: Waits, bucket: tuple[FileIO, str]
) -> None:
    for name, request in REQUESTS.items():
        expected = request(*bucket)
        for kind, more in TEMPORARY:
            for times in (1, 3):
                if times > 1 and name == "parts":
                    continue
                if name == "HEAD" and b"<Error>" in more.get("body", b""):
                    continue  # A HEAD answer has no body with the code.
                with object_server.fault(kind, lambda *_: True, times=times, **more) as fault:
                    try:
                        assert request(*bucket) == expected, (name, kind, more)
                    except StorageUnavailableError:
                        assert name == "parts" and (kind in _OF_PARTS or "400" in str(more)), (name, kind, more)
                assert fault.met == times or (kind == "truncate" and fault.met == 1)  # An answer may have no body.
                assert request(*bucket) == expected
    assert (bucket[0].size(f"{bucket[1]}/small"), bucket[0].size(f"{bucket[1]}/parts")) == (1000, 20 << 20)


@pytest.mark.parametrize("waited", [500], indirect=True)
def test_a_request_without_an_answer_is_sent_again(
    object_server: ObjectServer, waited: Waits, bucket: tuple[FileIO, str]
) -> None:
    for name, request in REQUESTS.items():
        expected = request(*bucket)
        with object_server.fault("delay", lambda *_: True, times=1, seconds=1.0) as fault:
            try:
                assert request(*bucket) == expected, name
            except StorageUnavailableError:
                assert name == "parts", name
        assert fault.met == 1


def test_a_long_failure_is_an_error_of_kind_retry_after_waits_that_double(
    object_server: ObjectServer, waited: Waits, bucket: tuple[FileIO, str]
) -> None:
    for name, request in REQUESTS.items():
        for kind, more in TEMPORARY:
            if kind == "truncate" or (name == "parts" and kind != "refuse"):
                continue
            if name == "HEAD" and b"<Error>" in more.get("body", b""):
                continue
            waited.seconds.clear()
            with (
                object_server.counted() as counts,
                object_server.fault(kind, lambda *_: True, times=1000, **more) as fault,
                pytest.raises(StorageUnavailableError, match=r"[Rr]un it again later") as raised,
            ):
                request(*bucket)
            assert raised.value.kind is ErrorKind.RETRY
            if name != "parts":
                assert waited.seconds == [0.25, 0.5, 1, 2, 4, 8, 8, 8], (name, kind, more)
                assert fault.met >= 9 and sum(counts.values()) <= 9 * 2  # The client may open the connection twice.
            shown = "".join(traceback.format_exception(raised.value))
            assert bucket[1] in shown and not [secret for secret in SECRETS if secret in shown]


def test_a_permanent_failure_is_not_retried_and_is_of_kind_fix(
    object_server: ObjectServer, waited: Waits, bucket: tuple[FileIO, str]
) -> None:
    answers = (
        ("403 Forbidden", b"<Error><Code>AccessDenied</Code></Error>"),
        ("403 Forbidden", b"<Error><Code>SignatureDoesNotMatch</Code></Error>"),
        ("403 Forbidden", b"<Error><Code>ExpiredToken</Code></Error>"),
        ("401 Unauthorized", b""),
        ("400 Bad Request", b"<Error><Code>AuthorizationHeaderMalformed</Code></Error>"),
        ("404 Not Found", b"<Error><Code>NoSuchBucket</Code></Error>"),
        ("501 Not Implemented", b"<Error><Code>NotImplemented</Code></Error>"),
        ("301 Moved Permanently", b"<Error><Code>PermanentRedirect</Code></Error>"),
    )
    for status, body in answers:
        for name in ("GET", "LIST", "PUT", "small file", "bulk"):
            waited.seconds.clear()
            with (
                object_server.fault("refuse", lambda *_: True, times=100, status=status, body=body) as fault,
                pytest.raises(StorageError) as raised,
            ):
                REQUESTS[name](*bucket)
            assert raised.value.kind is ErrorKind.FIX, (name, status, body)
            assert (waited.seconds, fault.met) == ([], 1)


def test_the_error_of_a_bulk_deletion_is_that_of_one_of_its_keys(
    object_server: ObjectServer, waited: Waits, bucket: tuple[FileIO, str]
) -> None:
    file_io, root = bucket
    answer = b"<DeleteResult><Error><Key>%s</Key><Code>%s</Code><Message>m</Message></Error></DeleteResult>"
    for code, kind in ((b"AccessDenied", ErrorKind.FIX), (b"InternalError", ErrorKind.RETRY)):
        body = answer % (b"missing", code)
        with (
            object_server.fault("refuse", lambda *_: True, times=100, status="200 OK", body=body),
            pytest.raises(StorageError) as raised,
        ):
            file_io.delete_files([f"{root}/missing", f"{root}/missing too"])
        assert raised.value.kind is kind


def test_a_truncated_listing_continues_after_the_last_key(
    object_server: ObjectServer, waited: Waits, bucket: tuple[FileIO, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file_io, root = bucket
    monkeypatch.setattr(object_store, "_KEYS_PER_DELETION", 4)
    for number in range(10):
        file_io.write(f"{root}/d/dt=a b%3Aé{number}/x", b"1")
    with object_server.fault("truncate", lambda method, _: method == "LIST", times=2):
        file_io.delete_dir(f"{root}/d")
    assert file_io.list(f"{root}/d") == [] and file_io.exists(f"{root}/a")


def test_a_store_that_never_answers_is_given_up_after_the_retries(waited: Waits) -> None:
    options = {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key": "a", "s3.secret-key": "b"}
    file_io, root = open_storage("s3://bucket", option_texts("o", options))
    with pytest.raises(StorageUnavailableError, match=r"s3://bucket/x: the store cannot be reached.*endpoint"):
        file_io.read(f"{root}/x")
    assert sum(waited.seconds) > 30
    with pytest.raises(StorageUnavailableError, match="snapshot-1"):  # The snapshot itself was never sent.
        publish(file_io, f"{root}/snapshot-1", b"x", waited.sleep)


def test_waits_end_a_minute_after_the_first_failure() -> None:
    now = [0.0]
    slow = replace(SYSTEM, monotonic=lambda: now[0], chance=lambda: 0.5)
    found = []
    for wait in retry_waits(slow):
        found.append(wait)
        now[0] += wait + 20
    assert found == [0.25, 0.5, 1]


def test_credentials_that_a_request_cannot_have_are_refused_by_name() -> None:
    for key in ("s3.session-token", "s3.access-key", "s3.secret-key"):
        for value in ("hid\nden", "hidden\x00", "hiddén"):
            given = {"s3.access-key": "a", "s3.secret-key": "b", "s3.endpoint": "http://127.0.0.1:1", key: value}
            with pytest.raises(InvalidInputError, match="that a request cannot have") as raised:
                open_storage("s3://bucket", given)
            assert "hid" not in str(raised.value)
