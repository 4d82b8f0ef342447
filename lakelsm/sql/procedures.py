"""Procedures of Paimon, as CALL names them: their arguments, and the calls of a table that do the work."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from lakelsm.arguments import checked_time
from lakelsm.epoch_time import FIRST_MILLIS, LAST_MILLIS, utc_time
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError, UnsupportedFeatureError
from lakelsm.moment import Moment
from lakelsm.snapshots.watermarks import first_with_watermark, newest_with_watermark
from lakelsm.sql.syntax.statements import Call
from lakelsm.table.table import Table, first_snapshot_since

#: Opens a table by the text that names it.
OpenTable: TypeAlias = Callable[[str], Table]
_Arguments: TypeAlias = Mapping[str, Any]
#: Arguments that are names, which may be whole numbers.
_NAMES = frozenset(["tag", "target_tag", "branch", "from_branch", "to_branch", "consumerId", "version"])
_WHOLE = re.compile("[0-9]{1,19}")
#: A bucket, or a range of buckets.
_BUCKETS = re.compile(r"\s*([0-9]{1,5})(?:\s*-\s*([0-9]{1,5}))?\s*")


@dataclass(frozen=True)
class Procedure:
    """A procedure: the names and types of its arguments in their order, how many of them are required, and its work."""

    arguments: Mapping[str, type]
    required: int
    run: Callable[[Table, _Arguments, str | None], Any]


def call_procedure(call: Call, open_table: OpenTable, engine: str | None) -> Any:
    """Run a procedure, and return what the call of the table returns.

    Raises InvalidInputError for an unknown procedure or wrong arguments, UnsupportedFeatureError for a procedure of
    Paimon that lakelsm has not built.
    """
    procedure = PROCEDURES.get(call.procedure)
    if procedure is None:
        if call.procedure in UNSUPPORTED:
            raise UnsupportedFeatureError(f"SQL: procedure sys.{call.procedure} is not supported.")
        near = difflib.get_close_matches(call.procedure, PROCEDURES, n=1)
        remedy = f" Did you mean sys.{near[0]}?" if near else f" Procedures: {', '.join(sorted(PROCEDURES))}."
        raise InvalidInputError(f"SQL: procedure sys.{call.procedure} does not exist.{remedy}")
    arguments = _arguments(call, procedure)
    return procedure.run(open_table(arguments.pop("table")), arguments, engine)


def _arguments(call: Call, procedure: Procedure) -> dict[str, Any]:
    names = list(procedure.arguments)
    lowered = {name.lower(): name for name in names}
    if len(call.positional) > len(names):
        raise InvalidInputError(f"SQL: CALL sys.{call.procedure} takes {len(names)} arguments: {', '.join(names)}.")
    given = dict(zip(names, call.positional))
    for name, value in call.named.items():
        known = lowered.get(name.lower())
        if known is None:
            raise InvalidInputError(
                f"SQL: CALL sys.{call.procedure}: argument {name} does not exist. Arguments: {', '.join(names)}."
            )
        if known in given:
            raise InvalidInputError(f"SQL: CALL sys.{call.procedure}: argument {name} is given twice.")
        given[known] = value
    known_values = {
        name: _typed(call.procedure, name, value, procedure.arguments[name])
        for name, value in given.items()
        if value is not None
    }
    for name in names[: procedure.required]:
        if name not in known_values:
            raise InvalidInputError(f"SQL: CALL sys.{call.procedure} needs the argument {name}.")
    return known_values


def _typed(procedure: str, name: str, value: Any, wanted: type) -> Any:
    """Return an argument of its type. Whole numbers are also names, of tags for example, and texts can be numbers."""
    if wanted is str and type(value) is int and name in _NAMES:
        return str(value)
    if wanted is int and isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if wanted is datetime and type(value) is int:
        if value > LAST_MILLIS:
            raise InvalidInputError(f"SQL: CALL sys.{procedure}: argument {name} is {value!r}, after the year 9999.")
        return utc_time(max(value, FIRST_MILLIS), name)
    if wanted is datetime and isinstance(value, str):
        return value
    if type(value) is not wanted:
        kinds = {
            str: "text",
            int: "a whole number",
            bool: "TRUE or FALSE",
            datetime: "a time as text, or in milliseconds since 1970,",
        }
        raise InvalidInputError(
            f"SQL: CALL sys.{procedure}: argument {name} is {value!r}, and {kinds[wanted]} is expected."
        )
    return value


def _only(procedure: str, given: _Arguments, *known: str) -> None:
    """Raise UnsupportedFeatureError for arguments of Paimon that have no effect here."""
    for name in given:
        if name not in known:
            raise UnsupportedFeatureError(f"SQL: CALL sys.{procedure}: argument {name} is not supported.")


def partitions_condition(text: str, default_name: str) -> str:
    """Return the condition of Paimon's partition texts: 'a=1,b=2;a=3', where ',' is AND and ';' is OR.

    ``default_name`` stands for NULL (option 'partition.default-name').
    """
    found = []
    for partition in text.split(";"):
        parts = []
        for each in partition.split(","):
            name, equals, value = each.partition("=")
            if not equals or not name.strip():
                raise InvalidInputError(
                    f"SQL: partitions: {each!r} is not a partition. Write, for example, 'dt=2024-01-01'."
                )
            column, value = f"`{name.strip().replace('`', '``')}`", value.strip()
            quoted = value.replace("\\", "\\\\").replace("'", "\\'")
            parts.append(f"{column} IS NULL" if value == default_name else f"{column} = '{quoted}'")
        found.append(" AND ".join(parts))
    return " OR ".join(f"({each})" for each in found)


def _partitions(table: Table, given: _Arguments) -> str:
    return partitions_condition(given["partitions"], table._store().options.partition_default_name)


def _where(procedure: str, table: Table, given: _Arguments) -> str | None:
    if "partitions" in given and "where" in given:
        raise InvalidInputError(f"SQL: CALL sys.{procedure}: has partitions and where. Give one of them.")
    return _partitions(table, given) if "partitions" in given else given.get("where")


def _compact(table: Table, given: _Arguments, engine: str | None) -> Any:
    if given.get("order_strategy") == "none":  # As without the argument: the primary key orders the rows.
        given = {name: value for name, value in given.items() if name != "order_strategy"}
    _only("compact", given, "partitions", "where", "compact_strategy", "buckets")
    strategy = given.get("compact_strategy", "full")
    if strategy not in ("full", "minor"):
        raise InvalidInputError(f"SQL: CALL sys.compact: compact_strategy is {strategy!r}. Use 'full' or 'minor'.")
    buckets = _buckets(given["buckets"]) if "buckets" in given else None
    return table.compact(full=strategy == "full", where=_where("compact", table, given), buckets=buckets, engine=engine)


def _buckets(text: str) -> list[int]:
    """Return the bucket numbers of Paimon's text: '0,2' and ranges such as '4-7', which commas separate."""
    found: set[int] = set()
    for part in text.split(","):
        numbers = _BUCKETS.fullmatch(part)
        if numbers is None or int(numbers[2] or numbers[1]) < int(numbers[1]):
            raise InvalidInputError(f"SQL: CALL sys.compact: buckets is {text!r}. Use, for example, '0,2' or '0-7'.")
        found |= set(range(int(numbers[1]), int(numbers[2] or numbers[1]) + 1))
    return sorted(found)


def _expire_snapshots(table: Table, given: _Arguments, engine: str | None) -> Any:
    _only("expire_snapshots", given, "retain_max", "retain_min", "older_than", "max_deletes")
    return table.maintenance.expire_snapshots(
        given.get("retain_min"),
        given.get("older_than"),
        retain_max=given.get("retain_max"),
        max_deletes=given.get("max_deletes"),
    )


def _expire_partitions(table: Table, given: _Arguments, engine: str | None) -> Any:
    _only("expire_partitions", given, "expiration_time", "expire_strategy")
    return table.maintenance.expire_partitions(given.get("expiration_time"), strategy=given.get("expire_strategy"))


def _remove_orphans(table: Table, given: _Arguments, engine: str | None) -> Any:
    _only("remove_orphan_files", given, "older_than", "dry_run")
    older_than = given.get("older_than")
    more = {} if older_than is None else {"older_than": older_than}
    return table.maintenance.remove_orphans(**more, dry_run=given.get("dry_run", False), engine=engine)


def _rollback(table: Table, given: _Arguments, engine: str | None) -> Any:
    points = [given[name] for name in ("version", "snapshot", "tag") if name in given]
    if len(points) != 1:
        raise InvalidInputError("SQL: CALL sys.rollback needs one of the arguments version, snapshot and tag.")
    point = points[0]
    if "tag" in given or (isinstance(point, str) and not _WHOLE.fullmatch(point)):
        return table.rollback(f"tag:{point}")
    return table.rollback(int(point))


def _moment(given: _Arguments) -> Moment:
    moment = checked_time("timestamp", given["timestamp"])
    assert moment is not None
    return moment


def _rollback_to_timestamp(table: Table, given: _Arguments, engine: str | None) -> Any:
    _moment(given)  # A text that is not a time would be the name of a tag.
    return table.rollback(given["timestamp"])


def _create_tag_from_timestamp(table: Table, given: _Arguments, engine: str | None) -> Any:
    snapshot = first_snapshot_since(table, _moment(given))
    if snapshot is None:
        raise SnapshotNotFoundError(f"Table {table.name}: no snapshot was committed at {given['timestamp']} or later.")
    return table.tags.create(given["tag"], snapshot, time_retained=given.get("time_retained"))


def _rollback_to_watermark(table: Table, given: _Arguments, engine: str | None) -> Any:
    return table.rollback(newest_with_watermark(table._store(), given["watermark"]).id)


def _create_tag_from_watermark(table: Table, given: _Arguments, engine: str | None) -> Any:
    snapshot = first_with_watermark(table._store(), given["watermark"], tags=True)
    return table.tags.create(given["tag"], snapshot.id, time_retained=given.get("time_retained"))


def _create_branch(table: Table, given: _Arguments, engine: str | None) -> Any:
    exists = given.get("ignoreIfExists", False)
    return table.branches.create(given["branch"], given.get("tag"), ignore_if_exists=exists)


def delete_each(names: Iterable[str], delete: Callable[..., Any]) -> list[Any]:
    """Delete things by their names. If one of them cannot be deleted, none is."""
    found = list(dict.fromkeys(name.strip() for name in names))
    for name in found if len(found) > 1 else ():
        delete(name, dry_run=True)
    return [delete(name) for name in found]


def _reset_consumer(table: Table, given: _Arguments, engine: str | None) -> Any:
    if "nextSnapshotId" in given:
        return table.consumers.record(given["consumerId"], given["nextSnapshotId"])
    return table.consumers.delete(given["consumerId"])


def _clear_consumers(table: Table, given: _Arguments, engine: str | None) -> list[str]:
    """Delete the consumers whose names match one pattern and not the other; the empty pattern is that of all."""
    included = _pattern("includingConsumers", given.get("includingConsumers") or ".*")
    excluded = _pattern("excludingConsumers", given["excludingConsumers"]) if given.get("excludingConsumers") else None
    names = [each.name for each in table.consumers.list()]
    cleared = [name for name in names if included.fullmatch(name) and not (excluded and excluded.fullmatch(name))]
    for name in cleared:
        table.consumers.delete(name)
    return cleared


def _pattern(name: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidInputError(
            f"SQL: CALL sys.clear_consumers: {name} is not a regular expression ({error})."
        ) from error


def _mark_done(table: Table, given: _Arguments, engine: str | None) -> Any:
    return table.maintenance.mark_partitions_done(_partitions(table, given))


def _drop_partition(table: Table, given: _Arguments, engine: str | None) -> Any:
    return table.maintenance.drop_partitions(_partitions(table, given))


def _names(text: str | None) -> Sequence[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


PROCEDURES: Mapping[str, Procedure] = {
    "compact": Procedure(
        {
            "table": str,
            "partitions": str,
            "compact_strategy": str,
            "order_strategy": str,
            "order_by": str,
            "where": str,
            "options": str,
            "partition_idle_time": str,
            "buckets": str,
        },
        1,
        _compact,
    ),
    "expire_snapshots": Procedure(
        {"table": str, "retain_max": int, "retain_min": int, "older_than": str, "max_deletes": int, "options": str},
        1,
        _expire_snapshots,
    ),
    "expire_partitions": Procedure(
        {
            "table": str,
            "expiration_time": str,
            "timestamp_formatter": str,
            "timestamp_pattern": str,
            "expire_strategy": str,
            "max_expires": int,
            "options": str,
        },
        1,
        _expire_partitions,
    ),
    "remove_orphan_files": Procedure(
        {"table": str, "older_than": str, "dry_run": bool, "parallelism": int, "mode": str}, 1, _remove_orphans
    ),
    "rollback": Procedure({"table": str, "version": str, "snapshot": int, "tag": str}, 1, _rollback),
    "rollback_to_timestamp": Procedure({"table": str, "timestamp": datetime}, 2, _rollback_to_timestamp),
    "rollback_to_watermark": Procedure({"table": str, "watermark": int}, 2, _rollback_to_watermark),
    "create_tag": Procedure(
        {"table": str, "tag": str, "snapshot": int, "time_retained": str},
        2,
        lambda table, given, engine: table.tags.create(
            given["tag"], given.get("snapshot"), time_retained=given.get("time_retained")
        ),
    ),
    "create_tag_from_timestamp": Procedure(
        {"table": str, "tag": str, "timestamp": datetime, "time_retained": str}, 3, _create_tag_from_timestamp
    ),
    "create_tag_from_watermark": Procedure(
        {"table": str, "tag": str, "watermark": int, "time_retained": str}, 3, _create_tag_from_watermark
    ),
    "replace_tag": Procedure(
        {"table": str, "tag": str, "snapshot": int, "time_retained": str},
        2,
        lambda table, given, engine: table.tags.replace(
            given["tag"], given.get("snapshot"), time_retained=given.get("time_retained")
        ),
    ),
    "rename_tag": Procedure(
        {"table": str, "tag": str, "target_tag": str},
        3,
        lambda table, given, engine: table.tags.rename(given["tag"], given["target_tag"]),
    ),
    "delete_tag": Procedure(
        {"table": str, "tag": str},
        2,
        lambda table, given, engine: delete_each(given["tag"].split(","), table.tags.delete),
    ),
    "expire_tags": Procedure(
        {"table": str, "older_than": str}, 1, lambda table, given, engine: table.tags.expire(given.get("older_than"))
    ),
    "create_branch": Procedure({"table": str, "branch": str, "tag": str, "ignoreIfExists": bool}, 2, _create_branch),
    "delete_branch": Procedure(
        {"table": str, "branch": str},
        2,
        lambda table, given, engine: delete_each(given["branch"].split(","), table.branches.delete),
    ),
    "rename_branch": Procedure(
        {"table": str, "from_branch": str, "to_branch": str},
        3,
        lambda table, given, engine: table.branches.rename(given["from_branch"], given["to_branch"]),
    ),
    "fast_forward": Procedure(
        {"table": str, "branch": str}, 2, lambda table, given, engine: table.branches.fast_forward(given["branch"])
    ),
    "reset_consumer": Procedure({"table": str, "consumerId": str, "nextSnapshotId": int}, 2, _reset_consumer),
    "clear_consumers": Procedure(
        {"table": str, "includingConsumers": str, "excludingConsumers": str}, 1, _clear_consumers
    ),
    "mark_partition_done": Procedure({"table": str, "partitions": str}, 2, _mark_done),
    "drop_partition": Procedure({"table": str, "partitions": str}, 2, _drop_partition),
    "analyze": Procedure(
        {"table": str, "columns": str},
        1,
        lambda table, given, engine: table.maintenance.analyze(_names(given.get("columns")), engine=engine),
    ),
}
#: Procedures of Paimon that are not built.
UNSUPPORTED = frozenset(
    [
        "alter_function", "alter_view_dialect", "compact_chain_table", "compact_database", "compact_manifest", "copy",
        "create_function", "create_global_index", "drop_function", "drop_global_index",
        "materialize_deletion_vectors", "merge_branch", "migrate_database", "migrate_table", "purge_files",
        "reassign_row_id", "remove_unexisting_files", "repair", "repair_earliest_snapshot", "rescale",
        "rewrite_file_index", "trigger_tag_automatic_creation"
    ]
)
