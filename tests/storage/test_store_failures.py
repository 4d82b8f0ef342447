"""What a store says, in lakelsm's words: the place, the reason, the remedy, and no credentials."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from lakelsm import Catalog
from lakelsm.arguments import option_texts
from lakelsm.errors import LakelsmError, StorageError
from lakelsm.storage import open_storage
from tests.storage.object_server import ObjectServer

SECRETS = ("test-access", "test-secret", "AKIASECRET")
ANSWER = b"<Error><Code>%s</Code><AWSAccessKeyId>AKIASECRET</AWSAccessKeyId><X>test-access</X></Error>"


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        ("403 Forbidden", b"InvalidAccessKeyId", "does not accept the credentials .403 Inv.*storage_options"),
        ("403 Forbidden", b"SignatureDoesNotMatch", "does not accept the credentials"),
        ("401 Unauthorized", b"No", "does not accept the credentials"),
        ("403 Forbidden", b"AccessDenied", "denies this .403 AccessDenied.*permission"),
        ("404 Not Found", b"NoSuchBucket", "there is no bucket or container 'bucket-.*Create it, or mend the name"),
        ("400 Bad Request", b"AuthorizationHeaderMalformed", "answered with an error .400 AuthorizationHeaderMalformed"),
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
            told = "".join(traceback.format_exception(raised.value)) + repr(raised.value.__context__)
            assert not [secret for secret in SECRETS if secret in told]


def test_a_server_that_is_not_there_is_told_by_its_place() -> None:
    options = {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key": "a", "s3.secret-key": "b"}
    file_io, root = open_storage("s3://bucket", option_texts("o", options))
    with pytest.raises(StorageError, match=r"s3://bucket/x: the store cannot be reached.*endpoint"):
        file_io.read(f"{root}/x")


def test_a_storm_of_refusals_is_waited_out(object_server: ObjectServer) -> None:
    file_io, root = open_storage(object_server.new_bucket(), option_texts("o", object_server.options))
    with object_server.fault("refuse", lambda *_: True, times=3) as fault:
        file_io.write(f"{root}/a", b"1")
    assert fault.met == 3 and file_io.read(f"{root}/a") == b"1"


def test_an_answer_that_is_cut_off_is_asked_for_again(object_server: ObjectServer) -> None:
    file_io, root = open_storage(object_server.new_bucket(), option_texts("o", object_server.options))
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
def test_settings_without_the_right_form_are_told_by_name_alone(uri: str, given: dict[str, str]) -> None:
    file_io, root = open_storage(uri, given)
    for call in (lambda: file_io.read(f"{root}/a"), lambda: file_io.create_if_absent(f"{root}/a", b"")):
        with pytest.raises(LakelsmError) as raised:
            call()
        told = "".join(traceback.format_exception(raised.value))
        assert root.removesuffix("/x") in told and "secretword" not in told
