"""Rows of a query as a table, CSV, JSON or Parquet, written batch by batch: memory does not grow with the rows."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.cli.report import printable
from lakelsm.cli.row_values import json_text, json_values, text_values
from lakelsm.environment import SYSTEM
from lakelsm.errors import InvalidInputError
from lakelsm.storage.file_io import temporary_name
from lakelsm.text_table import aligned, amount

#: The forms of rows, and the endings of file names that select one.
FORMATS = ("table", "csv", "json", "parquet")
_ENDINGS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
#: Rows that are aligned together, and characters of a cell that a table shows.
_BLOCK_ROWS, _MAX_SHOWN = 1000, 60

Write = Callable[[str], object]


def format_of(name: str | None, output: str | None) -> str:
    """Return the form that --format or the name of the file of --output selects."""
    return name or _ENDINGS.get(Path(output or "").suffix.lower(), "table")


def print_rows(rows: pa.RecordBatchReader, form: str) -> int:
    """Write rows to standard output, and return their number."""
    encoding = sys.stdout.encoding or "utf-8"

    def write(text: str) -> None:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))

    count = _write_texts(rows, form, write)
    sys.stdout.flush()
    return count


def write_file(rows: pa.RecordBatchReader, form: str, output: str) -> int:
    """Write rows to a file, and return their number. An existing file is replaced in one step after the last row."""
    if form != "parquet":
        with _replaced(output) as file, TextIOWrapper(file, "utf-8", newline="") as texts:
            return _write_texts(rows, form, texts.write)
    from pyarrow.parquet import ParquetWriter

    count = 0
    with rows:
        _check_names(rows.schema, form)
        with _replaced(output) as file, ParquetWriter(file, rows.schema, compression="zstd") as writer:
            for batch in rows:
                count += len(batch)
                writer.write_batch(batch)
    return count


def check_output(output: str) -> None:
    """Raise InvalidInputError unless a file can have this path."""
    path = Path(output)
    if not path.parent.is_dir():
        raise InvalidInputError(f"output: directory {str(path.parent)!r} does not exist. Create it first.")
    if path.exists() and not path.is_file():
        raise InvalidInputError(f"output: {output!r} is not a regular file. Name a file.")


@contextmanager
def _replaced(output: str) -> Iterator[BinaryIO]:
    """Open a temporary file that gets the name ``output`` if the block succeeds, and is deleted if it fails."""
    check_output(output)
    target = os.path.realpath(output)
    directory, name = os.path.split(target)
    temporary = os.path.join(directory, temporary_name(name, SYSTEM.new_uuid()))
    try:
        with Path(temporary).open("xb") as file:
            yield file
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _write_texts(rows: pa.RecordBatchReader, form: str, write: Write) -> int:
    """Write rows in a form of text, and return their number. The stream is closed also after an error."""
    with rows:
        if form == "table":
            return _write_table(rows, write)
        _check_names(rows.schema, form)
        if form == "csv":
            write(_csv_lines([pa.array([name], pa.large_string()) for name in rows.schema.names]))
        count = 0
        for batch in rows:
            if len(batch):
                count += len(batch)
                write(_csv_lines([text_values(each) for each in batch.columns]) if form == "csv" else _json_lines(batch))
        return count


def _check_names(schema: pa.Schema, form: str) -> None:
    """Raise InvalidInputError for two columns of one name, unless the form can have them."""
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated and form != "csv":
        raise InvalidInputError(
            f"--format {form}: two columns have the name {repeated[0]!r}. Give one of them another name with AS."
        )


def _csv_lines(columns: list[pa.Array]) -> str:
    """Return a line for each row. NULL is empty, and an empty text is quoted."""
    cells = [_csv_cells(each) for each in columns]
    lines = pc.binary_join_element_wise(*cells, pa.scalar(",", pa.large_string())) if len(cells) > 1 else cells[0]
    return "\n".join(lines.to_pylist()) + "\n"


def _csv_cells(texts: pa.Array) -> pa.Array:
    """Quote texts that have a comma, quote or line break, that begin or end with a space, or that are empty."""
    mark = pa.scalar('"', pa.large_string())
    needs_quotes = pc.match_substring_regex(texts, r'[",\r\n]|^\s|\s$|^$')
    if pc.any(needs_quotes).as_py():
        empty = pa.scalar("", pa.large_string())
        quoted = pc.binary_join_element_wise(mark, pc.replace_substring(texts, '"', '""'), mark, empty)
        texts = pc.if_else(needs_quotes, quoted, texts)
    return texts.fill_null("")


def _json_lines(batch: pa.RecordBatch) -> str:
    """Return an object in a line for each row."""
    names = batch.schema.names
    rows = zip(*(json_values(each) for each in batch.columns))
    return "".join(f"{json_text(dict(zip(names, row)))}\n" for row in rows)


def _write_table(rows: pa.RecordBatchReader, write: Write) -> int:
    """Write aligned rows, in blocks with one header, and then their number.

    A column gets wider in a later block if its values need that. The values of an only column are not cut, and the only
    value of a result, such as a statement of SHOW CREATE TABLE, keeps its line breaks.
    """
    names, count = list(rows.schema.names), 0
    blocks = _blocks(rows)
    first = next(blocks, None)
    widths = [0] * len(names)
    for block in [] if first is None else chain([first], blocks):
        cells = [text_values(each).to_pylist() for each in block.columns]
        in_lines = not count and len(block) == len(names) == 1
        lines = list(zip(*([_shown(cell, len(names) == 1, in_lines) for cell in column] for column in cells)))
        widths = [max(width, *(len(cell) for cell in column)) for width, column in zip(widths, zip(names, *lines))]
        # A row of the widths, which is cut off again, aligns the block as wide as the blocks before it.
        text = aligned(["x" * width for width in widths], [names, *lines]).split("\n", 1 if not count else 2)[-1]
        write(printable(text) + "\n")
        count += len(block)
    if first is None:
        write(printable(aligned(names, [])) + "\n")
    write(f"({amount(count, 'row')})\n")
    return count


def _blocks(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of `_BLOCK_ROWS`; the last one may have fewer."""
    pending: list[pa.RecordBatch] = []
    for batch in rows:
        while len(batch):
            part = batch.slice(0, _BLOCK_ROWS - sum(map(len, pending)))
            pending.append(part)
            batch = batch.slice(len(part))
            if sum(map(len, pending)) == _BLOCK_ROWS:
                yield from pa.Table.from_batches(pending).combine_chunks().to_batches()
                pending = []
    if pending:
        yield from pa.Table.from_batches(pending).combine_chunks().to_batches()


def _shown(cell: str | None, in_full: bool, in_lines: bool) -> str:
    if cell is None:
        return "-"
    text = cell if in_lines else cell.replace("\n", "\\n")
    return text if in_full or len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
