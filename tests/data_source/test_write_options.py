"""Options of writes: the identity of a batch, and no option of reads."""

from __future__ import annotations

import pytest

from lakelsm.data_source.write_options import WriteOptions
from lakelsm.errors import InvalidInputError


def test_the_identity_of_a_batch_is_read_in_any_case() -> None:
    options = WriteOptions.of({"PATH": "p", "Commit-User": "job", "batch-ID": "7"})
    assert (options.location.location, options.commit_user, options.batch_id) == ("p", "job", 7)
    assert WriteOptions.of({"path": "p"}) == WriteOptions(options.location)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot-id": "1"}, "option 'snapshot-id': a write of format('lakelsm') has no such option"),
        ({"batch-id": "-1"}, "option 'batch-id': '-1' is not a number from 0"),
        ({"batch-id": "1"}, "option 'batch-id': option 'commit-user' is missing"),
        ({"path": ""}, "option 'path': the table is missing"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        WriteOptions.of({"path": "p", **options})
    assert message in str(error.value)
