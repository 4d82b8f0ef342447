"""A user's arguments of a lookup join made into what joins a DataFrame with the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lakelsm.arguments import checked_condition, checked_flag, wrong_argument
from lakelsm.lookup.cache_choice import opened_cache
from lakelsm.lookup.join.executor_lookups import SharedLookup
from lakelsm.lookup.join.join_columns import JoinColumns
from lakelsm.lookup.join.join_task import JoinTask
from lakelsm.lookup.lookup_definition import LookupDefinition, checked_inner
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.lookup.open_lookup import call_options, call_policy
from lakelsm.snapshots.table_store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def lookup_join(
    store: TableStore,
    *,
    on: Mapping[str, str] | Sequence[str] | str,
    columns: Mapping[str, str] | Sequence[str] | None,
    how: str,
    where: str | None,
    refresh: object,
    cache: str | None,
    options: object,
    by_bucket: bool,
) -> Callable[[DataFrame], DataFrame]:
    """See `lakelsm.table.Table.lookup_join`."""
    from lakelsm.frames.lookup_join_frame import FrameJoin

    is_inner = checked_inner(how)
    named = JoinColumns.of(store.schema, on, columns)
    key, found = (tuple(field.name for field in part.values()) for part in (named.keys, named.added))
    LookupKeys.of(store.schema, key)
    given = call_options(options, cache, refresh)
    definition = LookupDefinition(found, key=key, where=checked_condition(where), options=given)
    policy = call_policy(store, definition, refresh)
    if policy.interval is None:
        # What another query opened would answer this one, and each process would have a snapshot of its own.
        raise wrong_argument("refresh", refresh, "seconds or a duration such as '10 s': the caches of joins are kept")
    lookup = SharedLookup(store, definition, policy, opens=opened_cache)
    buckets = named.buckets_of(store) if checked_flag("by_bucket", by_bucket) else None
    task = partial(JoinTask, lookup, tuple(named.added.values()), inner=is_inner)
    return FrameJoin(store.name, store.schema, keys=named.keys, columns=named.added, task=task, buckets=buckets)
