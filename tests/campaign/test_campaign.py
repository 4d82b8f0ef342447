"""A few kills of real processes; `make kills` has hundreds."""

from __future__ import annotations

from pathlib import Path

from tests.campaign.kills import Life, Tally
from tests.campaign.places import place


def test_a_table_bears_kills_of_the_processes_that_work_on_it(tmp_path: Path) -> None:
    with place("local", tmp_path) as there:
        tally = Tally()
        life = Life.begun(there, 1, tally)
        while tally.kills.total() < 4:
            life.round(remove=True)
