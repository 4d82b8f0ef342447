"""The place of an object and its key."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.storage.object_location import ObjectStoreKind, is_object_uri, object_location


def test_a_place_is_a_bucket_and_its_keys_are_what_follows() -> None:
    place, path = object_location("s3a://bucket/w/t/")
    assert (place.kind, place.root, place.bucket, path) == (ObjectStoreKind.S3, "s3://bucket", "bucket", "s3://bucket/w/t")
    assert place.key(path) == "w/t"
    assert place.key(place.root) == ""
    with pytest.raises(ValueError, match="is not in s3://bucket"):
        place.key("s3://bucket2/w")


def test_a_container_of_azure_is_in_an_account() -> None:
    place, path = object_location("abfss://files@account.dfs.core.windows.net/w")
    assert (place.bucket, place.account, place.key(path)) == ("files", "account", "w")


def test_only_whole_uris_of_known_schemes_are_objects() -> None:
    assert is_object_uri("S3://b/x") and is_object_uri("gs://b") and is_object_uri("hdfs://n/x")
    assert not is_object_uri("/s3://b") and not is_object_uri("s3") and not is_object_uri("file:/x")


@pytest.mark.parametrize(
    "uri",
    ["gs://a@b/x", "abfss://b/x", "s3://b/./x", "s3://a b/x", "s3://b?/x", "s3://é/x", "s3://b/a\x01", "s3://b\n/x"],
)
def test_other_forms_are_refused_with_the_right_one(uri: str) -> None:
    with pytest.raises(InvalidInputError):
        object_location(uri)
