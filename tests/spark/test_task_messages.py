"""Messages of tasks, collected and joined; failures told as what they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from lakelsm.commit.task_messages import TaskMessages
from lakelsm.errors import StorageError
from lakelsm.format.paths import AttemptNames
from lakelsm.spark.task_messages import collect_messages
from tests.commit.commit_table import add, file, hash_index


class Job:
    """As much of a DataFrame as a collection uses; its tasks give these rows or fail."""

    def __init__(self, *messages: TaskMessages, failure: Exception | None = None) -> None:
        self._messages, self._failure = messages, failure
        self.tags: list[str] = []
        self.cancelled: list[str] = []
        tracker = SimpleNamespace(getJobIdsForTag=lambda tag: [])
        context = SimpleNamespace(
            addJobTag=self.tags.append,
            removeJobTag=self.tags.remove,
            cancelJobsWithTag=self.cancelled.append,
            statusTracker=lambda: SimpleNamespace(getJobInfo=lambda job: None),
            _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: tracker)),
        )
        self.sparkSession = SimpleNamespace(sparkContext=context)

    def collect(self) -> list[tuple[Any, ...]]:
        assert len(self.tags) == 1
        if self._failure is not None:
            raise self._failure
        batches = [message.to_batch().columns for message in self._messages]
        return [tuple(bytearray(column[0].as_py()) for column in columns) for columns in batches]


def collected(job: Job) -> TaskMessages:
    return collect_messages(job, "/wh/t", AttemptNames.new())  # type: ignore[arg-type]


def test_the_messages_of_all_tasks_come_together_in_their_order() -> None:
    first = TaskMessages([add(file("one"))], [hash_index("index-1")], [])
    second = TaskMessages([add(file("two")), add(file("three"))], [], [add(file("changes"))])
    job = Job(first, TaskMessages(), second)
    joined = collected(job)
    assert [entry.file.file_name for entry in joined.entries] == ["one", "two", "three"]
    assert joined.index_entries == first.index_entries
    assert [entry.file.file_name for entry in joined.changelog_entries] == ["changes"]
    assert (job.tags, job.cancelled) == ([], [])
    assert collected(Job()) == TaskMessages()


def test_a_failed_job_is_ended_and_told_in_lakelsms_words() -> None:
    job = Job(failure=PySparkException("lakelsm.errors.StorageError: no room"))
    with pytest.raises(StorageError, match="no room"):
        collected(job)
    assert job.tags == []
    assert len(job.cancelled) == 1
