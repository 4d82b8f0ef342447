"""Deletion vectors that are tampered with: invalid ones are refused by name, and not used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.index.index_manifest import IndexManifestEntry, decode_index_manifest, encode_index_manifest
from tests.examples import examples
from tests.hostile.hostile_table import HostileTable
from tests.hostile.test_replaced_paths import REPLACEMENTS
from tests.hostile.test_wild_values import wild_avro

Make = Callable[[], HostileTable]
_Change = Callable[[IndexManifestEntry], IndexManifestEntry]

#: The operations that read the vectors of the newest snapshot.
PLANS = ("read", "read a tag", "count", "compact")
_LARGEST = 2**31 - 1


def change(table: HostileTable, change: _Change) -> str:
    """Change the first entry of the newest index manifest; return the name of its index file."""
    path = table.kinds["index manifest"]
    first, *others = decode_index_manifest(path.read_bytes(), "index manifest")
    path.write_bytes(encode_index_manifest([change(first), *others]))
    return first.file.file_name


def of_file(**values: Any) -> _Change:
    return lambda entry: replace(entry, file=replace(entry.file, **values))


def of_vector(**values: Any) -> _Change:
    """Change the first vector of the file."""

    def changed(entry: IndexManifestEntry) -> IndexManifestEntry:
        first, *others = entry.file.dv_ranges or ()
        return replace(entry, file=replace(entry.file, dv_ranges=(replace(first, **values), *others)))

    return changed


def test_all_operations_succeed_on_an_undamaged_table_with_vectors(make_masked: Make) -> None:
    assert set(make_masked().judge(keeps_rows=True).values()) == {None}


@pytest.mark.parametrize("name", ["../../../outside/LATEST", "/etc/passwd", "a/b", "..", ".", "", "a\0b"])
def test_the_name_of_an_index_file_must_not_be_a_path(make_masked: Make, name: str) -> None:
    table = make_masked()
    change(table, of_file(file_name=name))
    for error in table.refused(*PLANS):
        assert type(error) is CorruptTableError and repr(name) in str(error)


def test_vectors_at_external_paths_are_refused_by_name(make_masked: Make) -> None:
    table = make_masked()
    change(table, of_file(external_path=f"file:{table.outside}/index"))
    for error in table.refused(*PLANS):
        assert isinstance(error, UnsupportedFeatureError) and str(table.outside) in str(error)


#: Values that no index file can have: they are refused during planning.
IMPOSSIBLE: Mapping[str, _Change] = {
    "negative size": of_file(file_size=-1),
    "no ranges": of_file(dv_ranges=None),
    "negative offset": of_vector(offset=-1),
    "offset beyond the file": of_vector(offset=_LARGEST),
    "negative length": of_vector(length=-1),
    "length beyond the file": of_vector(length=_LARGEST),
    "negative count": of_vector(cardinality=-1),
    "count of more rows than the data file has": of_vector(cardinality=2**62),
    "two vectors of a file": lambda entry: replace(
        entry, file=replace(entry.file, dv_ranges=(entry.file.dv_ranges or ())[:1] * 2)
    ),
}


#: Values that contradict the index file: they are refused when it is read.
CONTRADICTED: Mapping[str, _Change] = {
    "another size": of_file(file_size=1),
    "another offset": of_vector(offset=0),
    "another length": of_vector(length=0),
    "another count": of_vector(cardinality=0),
}


@pytest.mark.parametrize("what", [*IMPOSSIBLE, *CONTRADICTED])
def test_impossible_values_are_refused_by_all_operations_that_read_vectors(make_masked: Make, what: str) -> None:
    table = make_masked()
    name = change(table, {**IMPOSSIBLE, **CONTRADICTED}[what])
    for error in table.refused(*(PLANS if what in IMPOSSIBLE else ("read", "read a tag", "compact"))):
        assert type(error) is CorruptTableError and name in str(error), error


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_a_replacement_of_an_index_file_is_neither_opened_nor_waited_for(make_masked: Make, replacement: str) -> None:
    table = make_masked()
    entries = decode_index_manifest(table.kinds["index manifest"].read_bytes(), "index manifest")
    path = table.root / "index" / entries[0].file.file_name
    path.unlink()
    REPLACEMENTS[replacement](path, table.outside)
    for error in table.refused("read", "read a tag", "compact"):
        assert type(error) is CorruptTableError and str(path) in str(error), error
    table.judge(keeps_rows=True)


@examples(8)
@given(draw=st.data())
def test_with_any_index_manifest_every_operation_ends_with_a_typed_error_or_none(
    make_masked: Make, draw: st.DataObject
) -> None:
    table = make_masked()
    note(wild_avro(table.kinds["index manifest"], draw))
    event(f"{sum(error is not None for error in table.judge().values())} refused")
