"""A write that the file system refuses is told with the file, the reason, the space and the remedy."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from lakelsm.errors import StorageError
from lakelsm.storage.refused_writes import refused_write

REMEDIES = {
    errno.EACCES: "Give this process the permission to write there",
    errno.EPERM: "Give this process the permission to write there",
    errno.EROFS: "Mount the file system so that it can be written",
    errno.EMFILE: "Raise the limit of open files (ulimit -n)",
    errno.ENFILE: "Raise the system's limit of open files",
    errno.ENOSPC: "Free space on that file system",
    errno.EDQUOT: "Free space, or raise the quota",
    errno.EFBIG: "Raise the limit of a file's size (ulimit -f)",
    errno.EIO: "Mend what the file system says",
}


@pytest.mark.parametrize("code", REMEDIES, ids=errno.errorcode.get)
def test_each_refusal_has_its_remedy(tmp_path: Path, code: int) -> None:
    path = str(tmp_path / "not" / "yet" / "there")
    error = refused_write(path, OSError(code, "as some library says it"), 12)
    assert isinstance(error, StorageError)
    free = r"; \d+ bytes are free there" if code in (errno.ENOSPC, errno.EDQUOT) else ""
    text = rf"{path} cannot be written \(12 bytes\): {re.escape(os.strerror(code))}{free}\. Nothing of this commit is "
    assert re.fullmatch(rf"{text}visible\. {re.escape(REMEDIES[code])}, and run it again\.", str(error))


def test_a_refusal_without_a_code_or_size_has_its_own_words_on_one_line() -> None:
    assert str(refused_write("/t/x", OSError("out\nof   luck"))) == (
        "/t/x cannot be written: out of luck. Nothing of this commit is visible. Mend what the file system says, and "
        "run it again."
    )
