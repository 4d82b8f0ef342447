"""Manifest entries as planning sees them."""

from __future__ import annotations

from dataclasses import replace

from lakelsm.plan.bucket_files import by_bucket
from tests.commit.commit_table import INT, add, file, partition

TYPES = [INT]


def test_files_are_put_to_their_bucket_and_point_into_the_entries() -> None:
    entries = [add(dt="a", bucket=1), add(dt="b", bucket=1), add(dt="a", bucket=0), add(dt="a", bucket=1)]
    found = by_bucket(entries, TYPES)
    assert {bucket: [view.index for view in files] for bucket, files in found.items()} == {
        (partition("a"), 1): [0, 3],
        (partition("b"), 1): [1],
        (partition("a"), 0): [2],
    }
    assert by_bucket([], TYPES) == {}


def test_keys_are_ranked_over_all_buckets_at_once() -> None:
    entries = [add(file(keys=(5, 9)), bucket=0), add(file(keys=(-3, 5)), bucket=1)]
    (first,), (second,) = by_bucket(entries, TYPES).values()
    assert second.min_key < first.min_key == second.max_key < first.max_key


def test_a_view_has_what_planning_needs_of_the_file() -> None:
    meta = file("name", level=4, seq=(3, 8), rows=7, creation_time_millis=99)
    ((view,),) = by_bucket([add(meta)], TYPES).values()
    assert (view.level, view.size, view.row_count, view.name) == (4, 1000, 7, "name")
    assert (view.min_seq, view.max_seq, view.delete_rows, view.creation_time) == (3, 8, 0, 99)


def test_a_count_of_no_deletes_is_believed_only_of_compactions_where_others_may_have_written_some() -> None:
    metas = [file(file_source=0), file(file_source=1), replace(file(file_source=0), delete_row_count=2)]
    (trusting,) = by_bucket(list(map(add, metas)), TYPES).values()
    (wary,) = by_bucket(list(map(add, metas)), TYPES, trust_delete_counts=False).values()
    assert [view.delete_rows for view in trusting] == [0, 0, 2]
    assert [view.delete_rows for view in wary] == [None, 0, 2]
