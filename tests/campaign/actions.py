"""The actions on a table of the processes that are killed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from lakelsm import Table
from lakelsm.errors import TableNotFoundError
from lakelsm.format.snapshot import Snapshot
from lakelsm.storage import FileIO
from tests.campaign.ledger import Batch
from tests.campaign.locations import TableLocation
from tests.campaign.processes import CampaignError, Voice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "p STRING, k INT, v BIGINT"


@dataclass(frozen=True)
class Action:
    """``kind`` is a method of `Doer`. The other fields are set if the kind needs them."""

    kind: str
    batches: tuple[Batch, ...] = ()
    branch: str = ""
    tag: str = ""
    to: int | str | None = None
    retain_last: int = 0


def act(say: Voice, location: TableLocation, action: Action) -> None:
    """Run an action in this process, without a JVM. Each published snapshot is reported before the next step."""
    doer = Doer(say, location.opened(), None)
    _say_publications(say, location.store().file_io)
    say("begin")
    doer.does(action)


def _say_publications(say: Voice, file_io: FileIO) -> None:
    """Make stores of this kind report 'published', with the batch, for each new snapshot of the main branch."""
    kind = type(file_io)
    create = kind.create_if_absent

    def create_and_say(self: FileIO, path: str, data: bytes) -> bool:
        created = create(self, path, data)
        folder, _, name = path.rpartition("/")
        if created and name.startswith("snapshot-") and folder.endswith("/snapshot") and "/branch/" not in path:
            snapshot = Snapshot.from_json(data)
            say("published", (snapshot.commit_kind, (snapshot.commit_user, snapshot.commit_identifier)))
        return created

    kind.create_if_absent = create_and_say  # type: ignore[method-assign]


@dataclass
class Doer:
    """Runs actions, and reports when they are done."""

    say: Voice
    table: Table
    spark: SparkSession | None

    def does(self, action: Action) -> None:
        started = time.monotonic()
        getattr(self, action.kind)(action)
        self.say("done", time.monotonic() - started)

    @property
    def _engine(self) -> str:
        return "spark" if self.spark is not None else "local"

    def write(self, action: Action) -> None:
        """Write batches; report each as acknowledged after its call. A replay of a committed batch changes nothing."""
        table = self.table.branches.open(action.branch) if action.branch else self.table
        for batch in action.batches:
            result = self._batch(table, batch)
            self.say("acknowledged", (batch.key, result.snapshot_id))

    def _batch(self, table: Table, batch: Batch) -> Any:
        named: dict[str, Any] = {"commit_user": batch.user, "batch_id": batch.id}
        if batch.kind == "drop":
            return table.maintenance.drop_partitions(f"p = '{batch.partition}'", commit_user=batch.user)
        frame = self._frame(batch)
        if batch.kind == "upsert":
            return table.write(frame, **named)
        if batch.kind == "overwrite":
            return table.overwrite(frame, {"p": batch.partition}, **named)
        return table.delete(keys=frame, **named)

    def _frame(self, batch: Batch) -> Any:
        columns = list(zip(*batch.rows))
        keys = pa.table({"p": pa.array(columns[0]), "k": pa.array(columns[1], pa.int32())})
        if batch.kind == "delete":
            return keys
        if self.spark is not None:
            return self.spark.createDataFrame(list(batch.rows), COLUMNS)
        return keys.append_column("v", pa.array(columns[2], pa.int64()))

    def compact(self, action: Action) -> None:
        status = self.table.compact(full=True, engine=self._engine).status
        _check(status in ("done", "nothing"), f"a compaction without concurrent commits ends as {status}")

    def expire(self, action: Action) -> None:
        result = self.table.maintenance.expire_snapshots(retain_last=action.retain_last)
        _check(result.failures == (), f"files could not be deleted: {result.failures}")

    def expire_by_options(self, action: Action) -> None:
        """Run the expiry that follows a commit, in case it was killed."""
        if not self.table._store().options.write_only:
            self.table.maintenance.expire_snapshots()

    def rollback(self, action: Action) -> None:
        result = self.table.rollback(action.to)
        _check(result.failures == (), f"files could not be deleted: {result.failures}")

    def plant(self, action: Action) -> None:
        """Write more orphan files than kills leave, so that their removal takes a while."""
        store = self.table._store()
        for number in range(20):
            name = f"data-{uuid4()}-0.parquet"
            store.file_io.write(f"{store.paths.root}/p={'ab'[number % 2]}/bucket-0/{name}", b"left")

    def orphans(self, action: Action) -> None:
        result = self.table.maintenance.remove_orphans(0, force=True, engine=self._engine)
        _check(result.failures == (), f"files could not be deleted: {result.failures}")

    def create_tag(self, action: Action) -> None:
        self.table.tags.create(action.tag, action.to if isinstance(action.to, int) else None, if_not_exists=True)

    def delete_tag(self, action: Action) -> None:
        if action.tag in {tag.name for tag in self.table.tags.list()}:
            self.table.tags.delete(action.tag)

    def create_branch(self, action: Action) -> None:
        self.table.branches.create(action.branch, action.tag, ignore_if_exists=True)

    def delete_branch(self, action: Action) -> None:
        try:
            self.table.branches.delete(action.branch)
        except TableNotFoundError:
            _check(action.branch not in {branch.name for branch in self.table.branches.list()}, "a branch is not found")

    def fast_forward(self, action: Action) -> None:
        self.table.branches.fast_forward(action.branch)


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise CampaignError(problem)
