"""A kill of a real process; `make kills` has hundreds."""

from __future__ import annotations

from pathlib import Path

from tests.campaign.kills import Life, Tally
from tests.campaign.places import place


def test_a_table_bears_a_kill_of_a_process_that_works_on_it(tmp_path: Path) -> None:
    with place("local", tmp_path) as there:
        tally = Tally()
        life = Life.begun(there, 1, tally)
        life.round(remove=True)
        life.audited(remove=False)
