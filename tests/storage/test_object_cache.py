"""The cache of objects and its limit of bytes."""

from __future__ import annotations

from lakelsm.storage.object_cache import ObjectCache


def test_the_contents_used_last_are_cached_up_to_the_limit() -> None:
    kept = ObjectCache(100)
    for name in "abcd":
        kept.keep(name, name.encode() * 25)
    assert kept.get("a") == b"a" * 25
    kept.keep("e", b"e" * 20)
    assert [name for name in "abcde" if kept.get(name) is None] == ["b"]
    kept.forget("a")
    kept.keep("f", b"f" * 25)
    assert [name for name in "abcdef" if kept.get(name) is None] == ["a", "b"]


def test_a_large_content_is_not_cached_and_a_second_content_replaces_the_first() -> None:
    kept = ObjectCache(100)
    kept.keep("a", b"x" * 26)
    assert kept.get("a") is None
    for _ in range(10):
        kept.keep("b", b"y" * 25)
    kept.keep("c", b"z" * 25)
    assert kept.get("b") == b"y" * 25 and kept.get("c") == b"z" * 25
    kept.clear()
    assert kept.get("b") is None
