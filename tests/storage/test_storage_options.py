"""The sources of endpoints and credentials, and that they are never shown."""

from __future__ import annotations

import os

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.storage.object_location import object_location
from lakelsm.storage.storage_options import store_options

S3 = object_location("s3://b")[0]
KEYS = {"s3.access-key": "given", "s3.secret-key": "given secret"}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)


def test_given_options_precede_the_environment_and_that_precedes_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    session = {"endpoint": "http://session", "endpoint.region": "session", "path.style.access": "true"}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://environment")
    monkeypatch.setenv("AWS_REGION", "environment")
    hadoop = {f"fs.s3a.{key}": value for key, value in session.items()}
    settings = dict(store_options(S3, {"s3.endpoint": "http://given"}, hadoop).settings)
    assert settings == {"endpoint": "http://given", "region": "environment", "virtual_hosted_style_request": "false"}


def test_a_sessions_settings_of_one_bucket_or_account_precede_its_general_ones() -> None:
    session = {
        "fs.s3a.access.key": "all",
        "fs.s3a.secret.key": "secret of all",
        "fs.s3a.session.token": "token of all",
        "fs.s3a.bucket.b.access.key": "mine",
        "fs.s3a.bucket.b.secret.key": "my secret",
        "fs.s3a.bucket.b.endpoint": "http://mine",
        "fs.s3a.bucket.b.c.endpoint": "http://other",
        "fs.azure.account.key.mine.dfs.core.windows.net": "my key",
        "fs.azure.account.key.other.dfs.core.windows.net": "other key",
    }
    found = store_options(S3, {}, session)
    assert found.credentials == ("mine", "my secret", None) and ("endpoint", "http://mine") in found.settings
    azure = object_location("abfss://c@mine.dfs.core.windows.net/w")[0]
    assert store_options(azure, {}, session).settings == (("account_key", "my key"),)
    assert store_options(object_location("abfss://c@third.dfs.core.windows.net/w")[0], {}, session).settings == ()


def test_credentials_are_taken_together_from_one_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "its secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "its token")
    assert store_options(S3, KEYS, {}).credentials == ("given", "given secret", None)
    assert store_options(S3, {}, {}).credentials == ("environment", "its secret", "its token")
    with pytest.raises(InvalidInputError, match="Pass both"):
        store_options(S3, {"s3.access-key": "given"}, {})


@pytest.mark.parametrize("key", ["s3.endpoint", "s3a.endpoint", "fs.s3a.endpoint", "AWS_ENDPOINT_URL", "aws_endpoint"])
def test_a_setting_has_several_spellings(key: str) -> None:
    options = store_options(S3, {key: "http://h:1"}, {})
    assert ("endpoint", "http://h:1") in options.settings and options.allows_http and options.is_own_endpoint


def test_an_endpoint_without_a_scheme_is_encrypted_unless_ssl_is_off() -> None:
    assert ("endpoint", "https://h:1") in store_options(S3, {"s3.endpoint": "h:1"}, {}).settings
    plain = store_options(S3, {"s3.endpoint": "h:1", "fs.s3a.connection.ssl.enabled": "false"}, {})
    assert ("endpoint", "http://h:1") in plain.settings


def test_unknown_keys_are_refused_in_options_and_ignored_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match=r"'s3.acess-key'.*Settings: s3.endpoint, s3.access-key"):
        store_options(S3, {"s3.acess-key": "word"}, {})
    assert store_options(S3, {}, {"fs.s3a.threads.max": "5", "fs.gs.x": "1"}).settings == (("region", "us-east-1"),)


def test_duplicate_spellings_and_invalid_flags_are_refused_without_their_values() -> None:
    for given in [{"s3.secret-key": "word", "AWS_SECRET_ACCESS_KEY": "other"}, {"s3.path.style.access": "word"}]:
        with pytest.raises(InvalidInputError) as raised:
            store_options(S3, given, {})
        assert "word" not in str(raised.value) and "other" not in str(raised.value)


def test_the_repr_of_store_options_shows_no_values() -> None:
    options = store_options(S3, {**KEYS, "s3.endpoint": "http://h", "s3.session-token": "token"}, {})
    assert not [word for word in ("given", "token", "h") if f"'{word}" in repr(options)]


def test_azure_and_google_have_separate_settings() -> None:
    azure = object_location("abfss://c@account.dfs.core.windows.net/x")[0]
    keys = {"fs.azure.account.key.account.dfs.core.windows.net": "k"}
    assert store_options(azure, keys, {}).settings == (("account_key", "k"),)
    google = object_location("gs://b")[0]
    assert store_options(google, {"GOOGLE_SERVICE_ACCOUNT": "/f"}, {}).settings == (("service_account", "/f"),)
    with pytest.raises(InvalidInputError, match=r"'s3.endpoint'.*Google"):
        store_options(google, {"s3.endpoint": "x"}, {})


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://h:port", "http://h:99999", "ftp://h", "http://", "http://user:word@h", "http://[", "http://h word",
        "http://h/wo rd", "http://h?sig=word", "http://h#word", "http://h\"", "http://h/<word>", "http://h\\word",
    ],
)  # fmt: skip
def test_an_endpoint_that_is_not_an_address_is_refused_and_not_shown(endpoint: str) -> None:
    with pytest.raises(InvalidInputError, match="is not an address of a server") as raised:
        store_options(S3, {"s3.endpoint": endpoint}, {})
    assert "word" not in str(raised.value)


@pytest.mark.parametrize("value", ["eu west", "eu/west", "eu?", "eu@x", 'eu"'])
def test_a_setting_that_is_part_of_an_address_has_only_its_characters(value: str) -> None:
    azure = object_location("abfss://c@account.dfs.core.windows.net/x")[0]
    for location, key, name in ((S3, "s3.region", "region"), (azure, "azure.tenant.id", "tenant_id")):
        with pytest.raises(InvalidInputError, match=f"a request cannot have .*: {name}"):
            store_options(location, {key: value}, {})
        assert dict(store_options(location, {key: "eu-west_1.x"}, {}).settings)[name] == "eu-west_1.x"
