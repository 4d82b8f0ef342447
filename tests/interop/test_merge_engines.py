"""Tables of the other merge engines have the same rows, whichever engine writes, merges or compacts them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.arrow_merge import file_levels, merged_rows
from tests.interop.engine_cases import CASES, EngineCase, Written
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import Peer

TOP = 5
WITH_PEERS = [pytest.param(case, name, id=f"{case.name}-{name}") for case in CASES for name in case.peers]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_lakelsm_reads_the_rows_of_the_case(
    ours: LakelsmTables, written: Callable[[EngineCase], Written], case: EngineCase
) -> None:
    tables = written(case)
    assert {0, TOP} == set(file_levels(str(tables.loose)))
    assert {TOP} == set(file_levels(str(tables.compacted)))
    assert case.comparable(ours.read(tables.loose)) == case.visible_rows()
    assert case.comparable(merged_rows(str(tables.compacted))) == case.rows()


@pytest.mark.parametrize(("case", "name"), WITH_PEERS)
def test_a_peer_reads_and_continues_what_lakelsm_wrote(
    peers: Callable[[str], Peer],
    written: Callable[[EngineCase], Written],
    tmp_path: Path,
    case: EngineCase,
    name: str,
) -> None:
    peer = peers(name)
    tables = written(case)
    assert case.comparable(peer.read(tables.loose)) == case.visible_rows()
    assert case.comparable(peer.read(tables.compacted)) == case.rows()

    path = tmp_path / "db.db" / case.name
    shutil.copytree(tables.begun, path)
    peer.write(path, *case.batches[-1])
    assert case.comparable(merged_rows(str(path))) == case.comparable(peer.read(path)) == case.visible_rows()
    if peer.compacts:
        peer.compact(path)
        assert {TOP} == set(file_levels(str(path)))
        assert case.comparable(merged_rows(str(path))) == case.comparable(peer.read(path)) == case.rows()


@pytest.mark.parametrize(("case", "name"), WITH_PEERS)
def test_lakelsm_reads_and_compacts_what_a_peer_wrote(
    ours: LakelsmTables, peers: Callable[[str], Peer], path: Path, tmp_path: Path, case: EngineCase, name: str
) -> None:
    peer = peers(name)
    first, *others = case.batches
    peer.create(path, case.columns, ["k"], options=case.table_options)
    peer.write(path, *first)
    if peer.compacts:
        peer.compact(path)
    for batch in others:
        peer.write(path, *batch)
    visible = case.visible_rows(compacted_first=peer.compacts)
    assert case.comparable(ours.read(path)) == case.comparable(peer.read(path)) == visible

    if peer.compacts:
        compacted = tmp_path / "compacted" / "db.db" / case.name
        shutil.copytree(path, compacted)
        peer.compact(compacted)
        assert case.comparable(merged_rows(str(compacted))) == case.rows()

    ours.compact(path)
    assert {TOP} == set(file_levels(str(path)))
    assert case.comparable(merged_rows(str(path))) == case.comparable(peer.read(path)) == case.rows()
