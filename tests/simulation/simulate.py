"""One run of a scenario on a store in memory."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache

from lakelsm.format.paths import TablePaths
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema.validation import validate_existing_table
from lakelsm.snapshots.table_store import TableStore
from tests.simulation.actions import ActorRun
from tests.simulation.ledger import Ledger, Violation
from tests.simulation.light_codecs import light_codecs
from tests.simulation.memory_store import ActorFiles, MemoryStore, OpenGate
from tests.simulation.scenario import Action, Actor, Scenario
from tests.simulation.scheduler import Process, Scheduler

_ROOT = "/t"
#: The time in milliseconds after which no operation is in progress any more.
_LONG = 2 * 86_400_000
#: One in this many seeds uses the real codecs of metadata files.
_REAL_CODECS = 50


@lru_cache(512)
def _description(options: tuple[tuple[str, str], ...]) -> tuple[TableSchema, TableOptions, bytes]:
    """Return a table's schema, its options, and the schema file."""
    schema = create_schema(
        "dt STRING NOT NULL, id INT NOT NULL, v STRING",
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options=dict(options),
        comment=None,
        now_millis=0,
    )
    return schema, validate_existing_table(schema), schema.to_json().encode()


class Simulation:
    """A table and its actors. An instance runs once."""

    def __init__(self, scenario: Scenario) -> None:
        schema, options, schema_file = _description(scenario.options)
        self.scheduler = Scheduler(scenario.schedule)
        self.store = MemoryStore(self.scheduler.clock, scenario.keeps_directories)
        paths = TablePaths(_ROOT, "t")
        own = ActorFiles(self.store, OpenGate())
        self.table = TableStore(file_io=own, paths=paths, schema=schema, options=options)
        own.write(paths.schema_file(0), schema_file)
        self.ledger = Ledger(
            self.store,
            self.table,
            self.scheduler.stop,
            current=lambda: self.scheduler.current,
            rolls_back=any(action.kind == "rollback" for actor in scenario.actors for action in actor.actions),
        )
        self.store.watch = self.ledger
        amounts = [action.amount for actor in scenario.actors for action in actor.actions if action.kind == "expire"]
        self.ledger.min_retained = {paths.snapshot_dir: min(amounts, default=1 << 30)}
        self.scheduler.on_fault = self.ledger.record_fault
        self.scheduler.lands_late = self._lands_late
        self._scenario = scenario

    def run(self) -> None:
        """Run the scenario. Raises the fault of the engine that it finds."""
        if self._scenario.founder is not None:
            self.scheduler.run([self._process(self._scenario.founder)])
            self.scheduler.now += _LONG
        self.scheduler.run([self._process(actor) for actor in self._scenario.actors])
        self.ledger.check_end()
        if self._scenario.cleans_up:
            self._clean_up()
            self.ledger.check_end()

    def _clean_up(self) -> None:
        """Remove all leftovers. Raises Violation if an unneeded file stays."""
        if self.ledger.has_unacknowledged:
            return
        self.scheduler.now += _LONG
        cleaner = Actor("last-cleaner", (Action("remove_orphans", 1, amount=_LONG // 2),), steady=1.0)
        self.scheduler.run([self._process(cleaner)])
        left = self.ledger.unneeded()
        if left:
            raise Violation(f"orphan removal left {left}")

    def _process(self, actor: Actor) -> Process:
        process = Process(self.scheduler, actor)
        table = replace(self.table, file_io=ActorFiles(self.store, process))
        process.start(ActorRun(process, table, self.ledger, self.scheduler.stop).run)
        return process

    def _lands_late(self, path: str) -> bool:
        """Return whether a failed request may take effect later: not if a rollback or deletion could free its name."""
        return "/tag/" not in path and "/branch/" not in path and not (self.ledger.rolls_back and "/snapshot/" in path)


def failure_of(scenario: Scenario, outcomes: Counter[str] | None = None) -> Exception | None:
    """Return the failure of a scenario, or None. ``outcomes`` counts the outcomes of its actions."""
    simulation = Simulation(scenario)
    codecs = nullcontext() if scenario.seed % _REAL_CODECS == 0 else light_codecs()
    with codecs:
        try:
            simulation.run()
        except Exception as error:  # noqa: BLE001 Any error is reported with its seed.
            return error
    if outcomes is not None:
        outcomes.update(simulation.ledger.outcomes)
    return None
