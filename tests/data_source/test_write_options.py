"""Options of writes: the identity of a batch, and no option of reads."""

from __future__ import annotations

import pytest

from lakelsm.data_source.write_options import WriteOptions
from lakelsm.errors import InvalidInputError
from lakelsm.write.event_time import EventTime


def test_the_identity_of_a_batch_is_read_in_any_case() -> None:
    options = WriteOptions.of({"PATH": "p", "Commit-User": "job", "batch-ID": "7"})
    assert (options.location.location, options.commit_user, options.batch_id) == ("p", "job", 7)
    assert WriteOptions.of({"path": "p"}) == WriteOptions(options.location)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot-id": "1"}, "option 'snapshot-id': a write of format('lakelsm') has no such option"),
        ({"compact-every": "1"}, "option 'compact-every': a write of format('lakelsm') has no such option"),
        ({"batch-id": "-1"}, "option 'batch-id': '-1' is not a number from 0"),
        ({"batch-id": "1"}, "option 'batch-id': option 'commit-user' is missing"),
        ({"path": ""}, "option 'path': the table is missing"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        WriteOptions.of({"path": "p", **options})
    assert message in str(error.value)


def test_streams_have_the_options_of_batches_without_their_id() -> None:
    given = {"path": "p", "Row-Kind": "k", "commit-USER": "job", "event-time": "t", "event-time-delay": "10 minutes"}
    options = WriteOptions.of_stream({**given, "checkpointLocation": "c", "queryName": "q"})
    assert options == WriteOptions.of(given)
    event_time = EventTime("t", 600_000, argument="option 'event-time'")
    assert (options.row_kind, options.commit_user, options.event_time) == ("k", "job", event_time)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Batch-Id": "1"}, "option 'batch-id': the batches of a stream have Spark's ids"),
        ({"commit-user": " "}, "commit_user: ' ' is blank"),
        ({"mergeSchema": "true"}, "option 'mergeschema': a stream of format('lakelsm') has no such option"),
        ({"asyncProgressTrackingEnabled": "true"}, "option 'asyncprogresstrackingenabled': a stream"),
        ({"compact-every": "-1"}, "option 'compact-every': '-1' is not a number of batches"),
        ({"row-kind": ""}, "option 'row-kind': '' is not the name of a column"),
        ({"event-time-delay": "1 s"}, "option 'event-time-delay': option 'event-time' is missing"),
        ({"event-time": "t", "event-time-delay": "x"}, "option 'event-time-delay': 'x'"),
    ],
)
def test_wrong_options_of_streams_are_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        WriteOptions.of_stream({"path": "p", **options})
    assert message in str(error.value)
