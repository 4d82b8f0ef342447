"""The settings of Hadoop's connector have the same meaning as those that open the store."""

from __future__ import annotations

import os

import pytest

from lakelsm.storage.hadoop_connector import connector_root, connector_settings, is_same_connection
from lakelsm.storage.object_location import object_location
from lakelsm.storage.storage_options import store_options

KEYS = {"s3.access-key": "me", "s3.secret-key": "word"}
PROVIDERS = "org.apache.hadoop.fs.s3a"
SIMPLE = {
    "aws.credentials.provider": f"{PROVIDERS}.SimpleAWSCredentialsProvider",
    "access.key": "me",
    "secret.key": "word",
}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"s3.region": "eu-west-1", **KEYS}, {"endpoint.region": "eu-west-1", **SIMPLE}),
        (
            {"s3.endpoint": "http://h:9000"},
            {"endpoint": "http://h:9000", "connection.ssl.enabled": "false", "path.style.access": "true"},
        ),
        (
            {"s3.endpoint": "h", "s3.path.style.access": "false"},
            {"endpoint": "https://h", "connection.ssl.enabled": "true", "path.style.access": "false"},
        ),
        ({"s3.path.style.access": "true"}, {"path.style.access": "true"}),
        ({"s3.anonymous": "true", **KEYS}, {"aws.credentials.provider": f"{PROVIDERS}.AnonymousAWSCredentialsProvider"}),
        (
            {"s3.session-token": "once", **KEYS},
            {
                **SIMPLE,
                "aws.credentials.provider": f"{PROVIDERS}.TemporaryAWSCredentialsProvider",
                "session.token": "once",
            },
        ),
    ],
)
def test_connector_settings_have_the_meaning_of_the_options(given: dict[str, str], expected: dict[str, str]) -> None:
    found = connector_settings(store_options(object_location("s3://b")[0], given, {}))
    assert found == {"endpoint.region": "us-east-1", **expected}


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("s3://b/w", "s3a://b"),
        ("s3a://my.b/w", "s3a://my.b"),
        ("gs://b/w", None),
        ("abfss://c@a.dfs.core.windows.net/w", None),
    ],
)
def test_only_s3_objects_are_read_through_a_connector(uri: str, root: str | None) -> None:
    assert connector_root(object_location(uri)[0]) == root


ME = {"endpoint": "http://h:9000", "access.key": "me", "secret.key": "word"}
ANONYMOUS = {"aws.credentials.provider": f"{PROVIDERS}.AnonymousAWSCredentialsProvider"}


@pytest.mark.parametrize(
    ("wanted", "opened", "matches"),
    [
        (ME, {**ME, "endpoint": "h:9000", "aws.credentials.provider": "several"}, True),
        (ME, {**ME, "endpoint": "http://other:9000"}, False),
        (ME, {**ME, "access.key": "other"}, False),
        (ME, {**ME, "secret.key": "other"}, False),
        (ME, {"endpoint": "http://h:9000"}, False),
        ({}, ME, False),
        ({}, {"endpoint": "s3.eu-west-1.amazonaws.com", "session.token": ""}, True),
        ({}, ANONYMOUS, False),
        (ANONYMOUS, ANONYMOUS, True),
        ({**ME, "session.token": "new"}, {**ME, "session.token": "old"}, False),
    ],
)
def test_a_connection_is_the_same_if_store_and_credentials_are_equal(
    wanted: dict[str, str], opened: dict[str, str], matches: bool
) -> None:
    assert is_same_connection(wanted, opened) == matches
