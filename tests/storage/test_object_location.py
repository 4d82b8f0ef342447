"""The bucket of a URI, and the keys of objects."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.storage.object_location import ObjectStoreKind, is_object_uri, object_location


def test_a_location_is_a_bucket_and_keys_are_the_rest_of_the_path() -> None:
    location, path = object_location("s3a://bucket/w/t/")
    assert (location.kind, location.root, location.bucket) == (ObjectStoreKind.S3, "s3://bucket", "bucket")
    assert path == "s3://bucket/w/t"
    assert location.key(path) == "w/t"
    assert location.key(location.root) == ""
    with pytest.raises(ValueError, match="is not in s3://bucket"):
        location.key("s3://bucket2/w")


def test_a_container_of_azure_belongs_to_an_account() -> None:
    location, path = object_location("abfss://files@account.dfs.core.windows.net/w")
    assert (location.bucket, location.account, location.key(path)) == ("files", "account", "w")


def test_only_whole_uris_of_known_schemes_are_object_uris() -> None:
    assert is_object_uri("S3://b/x") and is_object_uri("gs://b") and is_object_uri("hdfs://n/x")
    assert not is_object_uri("/s3://b") and not is_object_uri("s3") and not is_object_uri("file:/x")


@pytest.mark.parametrize(
    "uri",
    ["gs://a@b/x", "abfss://b/x", "s3://b/./x", "s3://a b/x", "s3://b?/x", "s3://é/x", "s3://b/a\x01", "s3://b\n/x"],
)
def test_other_forms_of_uris_are_refused(uri: str) -> None:
    with pytest.raises(InvalidInputError):
        object_location(uri)
