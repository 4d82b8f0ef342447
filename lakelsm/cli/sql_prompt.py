"""The prompt of ``lakelsm sql``: lines become statements, with a history and with completion of names."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from lakelsm.catalog import Catalog
from lakelsm.errors import LakelsmError
from lakelsm.sql.syntax.query_text import quoted
from lakelsm.sql.syntax.script import split_script

_LOG = logging.getLogger("lakelsm.cli")
_FIRST, _NEXT = "lakelsm> ", "      -> "
_HISTORY_LINES = 2000
_PLAIN = re.compile(r"[A-Za-z_]\w*")
#: A name, or names joined by dots, in a statement.
_NAMES = re.compile(r"(?:`[^`]*`|[\w$]+)(?:\.(?:`[^`]*`|[\w$]+))*")
_KEYWORDS = re.findall(
    r"\w+",
    """
    ALTER ANALYZE AND AS ASC BETWEEN BRANCHES BY CALL CASE CAST COLUMN COLUMNS COMMENT COMPUTE COUNT CREATE CROSS DATABASE
    DATABASES DELETE DESC DESCRIBE DISTINCT DROP ELSE END EXCEPT EXISTS EXPLAIN EXTENDED FALSE FROM FULL GROUP HAVING
    HISTORY IN INNER INSERT INTERSECT INTO IS JOIN LEFT LIKE LIMIT MATCHED MERGE NOT NULL OFFSET ON OPTIMIZE OR ORDER
    OUTER OVER OVERWRITE PARTITION PARTITIONED PARTITIONS RENAME RESTORE RIGHT SELECT SET SHOW STATISTICS TABLE TABLES
    TAG TAGS TBLPROPERTIES THEN TIMESTAMP TO TRUE TRUNCATE UNION UPDATE USING VACUUM VALUES VERSION WHEN WHERE WITH
    """,
)


def run_prompt(catalog: Catalog, run: Callable[[str], None], history: str | None) -> None:
    """Read statements from a terminal and run each, until the end of input or 'quit'.

    Ctrl-C discards the lines of a statement, or stops the one that runs.
    """
    completion = Completion(catalog)
    with _line_editing(completion, history_file() if history is None else Path(history)):
        pending = ""
        while True:
            try:
                pending += input(_NEXT if pending else _FIRST) + "\n"
                if pending.strip().rstrip(";").strip().lower() in ("quit", "exit"):
                    return
                pending = completion.pending = _run_complete(pending, run, completion)
            except EOFError:
                print(flush=True)
                return
            except KeyboardInterrupt:
                print(flush=True)
                pending = completion.pending = ""


def _run_complete(text: str, run: Callable[[str], None], completion: Completion) -> str:
    """Run the complete statements of a text, and return the rest."""
    statements = list(split_script(text))
    for statement in statements:
        if not statement.is_complete:
            # An open quote has the line break already, and a second one would change its value.
            return statement.text if statement.text.endswith("\n") else f"{statement.text}\n"
        run(statement.text)
        completion.forget()
    return ""


def history_file() -> Path:
    """Return the default file of the history."""
    state = os.environ.get("XDG_STATE_HOME") or ""
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return base / "lakelsm" / "sql_history"


@contextmanager
def _line_editing(completion: Completion, history: Path) -> Iterator[None]:
    """Edit lines with history and completion within the block, if Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    readline.set_completer(_completer(completion, readline.get_line_buffer))
    readline.set_completer_delims(" \t\n,;()=<>+-*/%|")
    is_editline = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_editline else "tab: complete")
    readline.set_history_length(_HISTORY_LINES)
    with suppress(FileNotFoundError):
        _try("read", history, lambda: readline.read_history_file(str(history)))
    try:
        yield
    finally:
        readline.set_completer(None)
        _try("written", history, lambda: _write_history(history, readline.write_history_file))


def _try(what: str, history: Path, call: Callable[[], None]) -> None:
    try:
        call()
    except FileNotFoundError:
        raise
    except OSError as error:
        _LOG.warning("The history file %s cannot be %s: %s", history, what, error.strerror)


def _write_history(history: Path, write: Callable[[str], None]) -> None:
    """Write the history, which only the user can read, because statements may contain secrets."""
    history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(history, os.O_WRONLY | os.O_CREAT, 0o600))
    write(str(history))


def _completer(completion: Completion, line: Callable[[], str]) -> Callable[[str, int], str | None]:
    """Return a completer for readline, which calls it with 0, 1, … for the candidates of a word."""
    found: list[str] = []

    def complete(word: str, state: int) -> str | None:
        if state == 0:
            found[:] = completion.candidates(word, line())
        return found[state] if state < len(found) else None

    return complete


class Completion:
    """Candidates for a word: keywords, databases, tables, and the columns of the tables that the statement names.

    Names are read from the warehouse at the first completion after a statement. ``pending`` are the lines of the
    statement before the current one.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._columns: dict[str, Sequence[str]] = {}
        self.pending = ""

    def forget(self) -> None:
        """Read the names again at the next completion, because a statement may have changed them."""
        self.__dict__.pop("_tables", None)
        self._columns = {}

    def candidates(self, word: str, line: str) -> list[str]:
        """Return the names and keywords that begin with ``word``, sorted. Names come before keywords."""
        start = word.lower()
        try:
            names = {each for each in self._names(word, self.pending + line) if each.lower().startswith(start)}
        except (LakelsmError, OSError):  # A warehouse that cannot be read has no names to offer.
            names = set()
        keywords = (each.lower() if word.islower() else each for each in _KEYWORDS if each.lower().startswith(start))
        return [*sorted(names), *(keywords if word else ())]

    @cached_property
    def _tables(self) -> dict[str, str]:
        """The tables by their names in lower case, as a statement writes them."""
        return {name.lower(): name for name in self._catalog.list_tables()}

    def _names(self, word: str, text: str) -> Iterator[str]:
        for name in self._tables.values():
            database, _, table = name.partition(".")
            yield f"{_written(database)}."
            yield f"{_written(database)}.{_written(table)}"
            if database == "default":
                yield _written(table)
        prefix = word[: word.rfind(".") + 1]
        for named in _NAMES.findall(text):
            plain = named.replace("`", "").lower()
            for name in (plain, f"default.{plain}"):
                for column in self._columns_of(name):
                    yield f"{prefix}{_written(column)}"

    def _columns_of(self, name: str) -> Sequence[str]:
        if name not in self._tables:
            return ()
        if name not in self._columns:
            self._columns[name] = self._catalog.table(self._tables[name]).schema.field_names
        return self._columns[name]


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)
