"""One run of a scenario on a store in memory."""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache

from lakelsm.format.paths import TablePaths
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema.validation import validate_existing_table
from lakelsm.snapshots.table_store import TableStore
from tests.simulation.actions import ActorRun
from tests.simulation.ledger import Ledger
from tests.simulation.light_codecs import light_codecs
from tests.simulation.memory_store import ActorFiles, MemoryStore, OpenGate
from tests.simulation.scenario import Scenario
from tests.simulation.scheduler import Process, Scheduler

_ROOT = "/t"
#: One in so many seeds reads and writes real metadata files.
_REAL_CODECS = 50


@lru_cache(512)
def _description(options: tuple[tuple[str, str], ...]) -> tuple[TableSchema, TableOptions, bytes]:
    """A table's schema, its options, and the schema file."""
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
    """A table and its actors. Not reusable."""

    def __init__(self, scenario: Scenario) -> None:
        schema, options, schema_file = _description(scenario.options)
        self.scheduler = Scheduler(scenario.schedule)
        self.store = MemoryStore(self.scheduler.clock, scenario.keeps_directories)
        paths = TablePaths(_ROOT, "t")
        own = ActorFiles(self.store, OpenGate())
        self.table = TableStore(file_io=own, paths=paths, schema=schema, options=options)
        own.write(paths.schema_file(0), schema_file)
        self.ledger = Ledger(self.store, self.table, self.scheduler.stop)
        self.store.watch = self.ledger
        self._actors = scenario.actors

    def run(self) -> None:
        """Raises what is wrong with the engine."""
        processes = []
        for actor in self._actors:
            process = Process(self.scheduler, actor)
            files = ActorFiles(self.store, process)
            table = TableStore(
                file_io=files, paths=self.table.paths, schema=self.table.schema, options=self.table.options
            )
            process.start(ActorRun(process, table, self.ledger, self.scheduler.stop).run)
            processes.append(process)
        self.scheduler.run(processes)
        self.ledger.check_end()


def failure_of(scenario: Scenario) -> Exception | None:
    """What a run of the scenario breaks; None where it breaks nothing."""
    codecs = nullcontext() if scenario.seed % _REAL_CODECS == 0 else light_codecs()
    with codecs:
        try:
            Simulation(scenario).run()
        except Exception as error:  # noqa: BLE001 whatever it is, it is reported with its seed
            return error
    return None
