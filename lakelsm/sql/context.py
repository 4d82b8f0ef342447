"""The context in which statements run: a catalog, the frames that the caller passes, and the engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from lakelsm.arguments import TAG_POINT
from lakelsm.engine import spark_session
from lakelsm.epoch_time import LAST_MILLIS, utc_time
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.moment import MOMENT_FORMS, Moment
from lakelsm.sql.metadata_columns import with_metadata_columns
from lakelsm.sql.pushdown import Need, needs
from lakelsm.sql.query_source import FrameSource, QuerySource, hidden_columns
from lakelsm.sql.query_sources import ChangesSource, ResultSource, is_id, table_source
from lakelsm.sql.syntax.qualified_columns import with_plain_qualifiers
from lakelsm.sql.syntax.query_text import QueryText
from lakelsm.sql.syntax.relations import FUNCTIONS, TableReference, refuse_functions
from lakelsm.sql.syntax.statements import Name
from lakelsm.table.table import Table, is_before_snapshots, previous_automatic_tag
from lakelsm.table.table_view import is_same_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelsm.schema_changes import SchemaChange
    from lakelsm.sql.local.query_result import QueryResult

#: The database of names without one, as in Paimon.
DEFAULT_DATABASE = "default"
#: The remedy without Spark, for messages.
_WITHOUT_SPARK = "pass engine='local'"


class SqlCatalog(Protocol):
    """The calls of a catalog that statements become."""

    def table(self, name: str) -> Table: ...
    def table_exists(self, name: str) -> bool: ...
    def list_databases(self) -> list[str]: ...
    def list_tables(self, database: str | None = None) -> list[str]: ...
    def create_table(
        self,
        name: str,
        schema: object,
        *,
        primary_key: str | Sequence[str],
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
        load: bool = False,
    ) -> Table: ...
    def alter_table(self, name: str, *changes: SchemaChange) -> Table: ...
    def drop_table(self, name: str) -> None: ...
    def rename_table(self, name: str, new_name: str) -> Table: ...
    def create_database(self, name: str, *, if_not_exists: bool = False) -> None: ...
    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None: ...


@dataclass(frozen=True)
class SqlContext:
    """A catalog with frames by name. ``engine`` is 'spark' or 'local'. ``target`` is the table of a MERGE."""

    catalog: SqlCatalog
    frames: Mapping[str, Any]
    engine: str
    spark: SparkSession | None
    _: KW_ONLY
    target: Table | None = None

    def full_name(self, name: Name) -> str:
        """Return the name of a table as 'database.table'."""
        if len(name) > 2:
            raise InvalidInputError(f"SQL: table {'.'.join(name)!r}: write the name as database.table.")
        if any("." in part for part in name):
            raise InvalidInputError(f"SQL: table {'.'.join(name)!r}: a name cannot contain a dot.")
        return f"{DEFAULT_DATABASE}.{name[0]}" if len(name) == 1 else ".".join(name)

    def table(self, name: Name) -> Table:
        """Open a table, or a branch by 'table$branch_name'."""
        return self.catalog.table(self.full_name(name))

    def query(self, text: str) -> DataFrame | QueryResult:
        """Plan a query: a DataFrame on Spark, else the rows of a query in this process."""
        query = with_plain_qualifiers(QueryText.of(text))
        sources = self._sources(query)
        if self.engine == "spark":
            return self._frame(query, sources, self._wanted(query, sources))
        # Loading the parser of queries takes longer than most other statements.
        from lakelsm.sql.local.local_query import local_query

        return local_query(query, sources)

    def explain(self, text: str, mode: str | None) -> list[str]:
        """Return the lines of a query's plan: what the read of each table opens, and then the plan of the engine."""
        query = with_plain_qualifiers(QueryText.of(text))
        sources = self._sources(query)
        if self.engine == "spark":
            wanted = self._wanted(query, sources)
            rows = self._frame(query, sources, wanted, f"EXPLAIN {mode or ''} ").collect()
            plan = "\n".join(str(row[0]) for row in rows)
        elif mode is not None:
            raise UnsupportedFeatureError(f"SQL: EXPLAIN {mode.upper()} is supported on Spark only.")
        else:
            from lakelsm.sql.local.local_query import local_plan

            wanted, plan = local_plan(query, sources)
        return [*(sources[start].plan(wanted[start]) for start in sorted(sources)), "", *plan.splitlines()]

    def _sources(self, query: QueryText) -> dict[int, QuerySource]:
        refuse_functions(query.tokens)
        found = ((each, self._source(each)) for each in query.references)
        return with_metadata_columns(query, {each.start: source for each, source in found if source is not None})

    def session(self) -> SparkSession:
        """Return the session that runs queries. Raises InvalidInputError for a DataFrame of another session."""
        session = spark_session(self.spark, _WITHOUT_SPARK)
        for name, frame in self.frames.items():
            if is_spark_frame(frame):
                from lakelsm.spark.session import session_of_rows

                session_of_rows(name, frame, session)
        return session

    def _frame(
        self, query: QueryText, sources: Mapping[int, QuerySource], wanted: Mapping[int, Need], before: str = ""
    ) -> DataFrame:
        from lakelsm.frames.sql_frame import query_frame

        session = self.session()
        names = query.new_names(sources)
        frames = {names[start]: source.frame(session, wanted[start]) for start, source in sources.items()}
        return query_frame(session, before + query.replaced(names, hidden=hidden_columns(sources)), frames)

    def _wanted(self, query: QueryText, sources: Mapping[int, QuerySource]) -> Mapping[int, Need]:
        """Return what Spark needs of each source. A frame that the caller passes is needed as a whole."""
        from lakelsm.frames.sql_frame import session_time_zone

        tables = {start: source.fields for start, source in sources.items() if not isinstance(source, FrameSource)}
        found = needs(query, tables, session_time_zone(self.session()))
        return {start: found.get(start, Need(None, None)) for start in sources}

    def _source(self, reference: TableReference) -> QuerySource | None:
        """Return the source that a name in a query stands for; None for a name that only the Spark session may know."""
        name = reference.name
        if reference.arguments is not None:
            return self._function(reference)
        if len(name) == 1 and name[0] in self.frames:
            return FrameSource(name[0], self.frames[name[0]])
        if len(name) > 2 and self.engine == "spark":
            return None
        table, separator, suffix = name[-1].partition("$")
        if separator and not suffix:
            raise InvalidInputError(f"SQL: table {'.'.join(name)!r}: the name of a system table follows $.")
        branch, _, system = suffix.partition("$") if suffix.startswith("branch_") else ("", "", suffix)
        full = self.full_name((*name[:-1], f"{table}${branch}" if branch else table))
        if self.engine == "spark" and not self.catalog.table_exists(full):
            return None
        opened = self.catalog.table(full)
        if not system:
            # A MERGE reads the rows of its target that others do not show yet, and so must its source.
            return table_source(opened, reference, fresh=self.target is not None and is_same_table(self.target, opened))
        source = table_source(opened, reference) if reference.version or reference.timestamp else None
        inspected: Any = opened if source is None else source.table  # type: ignore[attr-defined]
        return ResultSource(f"{full}${system}", inspected.inspect.system(system))

    def _function(self, reference: TableReference) -> QuerySource | None:
        """Return the rows of a table function of Paimon; None for other functions."""
        name, arguments = reference.name[-1].lower(), reference.arguments or ()
        if name not in FUNCTIONS:
            return None
        if len(arguments) != FUNCTIONS[name] or not isinstance(arguments[0], str):
            wanted = "a start and an end" if FUNCTIONS[name] == 3 else "and the name of an automatic tag"
            raise InvalidInputError(f"SQL: {name} takes a table's name as text, {wanted}.")
        table, first, last = self.table(tuple(arguments[0].split("."))), arguments[1], arguments[-1]
        if name == "paimon_incremental_between_timestamp":
            start, end = _time(name, first), _time(name, last)
            return ChangesSource(table, start, end, is_empty=is_before_snapshots(table, start, end))
        if name == "paimon_incremental_to_auto_tag":
            tag = str(last)
            return ChangesSource(table, f"{TAG_POINT}{previous_automatic_tag(table, tag)}", f"{TAG_POINT}{tag}")
        tags = {tag.name for tag in table.tags.list()}
        return ChangesSource(table, _version(first, tags), _version(last, tags))


def _version(value: int | str, tags: Collection[str]) -> int | str:
    """Return a snapshot id, or the name of a tag, which has priority."""
    if isinstance(value, int) or (is_id(value) and value not in tags):
        return int(value)
    return f"{TAG_POINT}{value}"


def _time(function: str, value: int | str) -> str | datetime:
    """Return a time as text, or in milliseconds since 1970."""
    if isinstance(value, str) and not is_id(value):
        try:
            return Moment.of_text(value).given
        except ValueError as error:
            raise InvalidInputError(f"SQL: {function}: {value!r} is not a point in time. Use {MOMENT_FORMS}.") from error
    millis = int(value)
    if millis > LAST_MILLIS:
        raise InvalidInputError(f"SQL: {function}: the time {millis} (milliseconds) is after the year 9999.")
    return utc_time(millis, function)
