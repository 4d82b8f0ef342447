"""Refusals of the file system become errors with the file, the reason, the free space and the remedy."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from lakelsm.errors import ErrorKind, StorageError
from lakelsm.storage.refusals import refused_deletion, refused_write

#: A word that the remedy of each error must contain.
REMEDIES = {
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.EROFS: "Mount",
    errno.EMFILE: "ulimit -n",
    errno.ENFILE: "system's limit",
    errno.ENOSPC: "Free space",
    errno.EDQUOT: "quota",
    errno.EFBIG: "ulimit -f",
    errno.EIO: "Fix the cause",
    errno.ESTALE: "answers again",
    errno.ETIMEDOUT: "answers again",
    errno.EHOSTUNREACH: "answers again",
}


@pytest.mark.parametrize("code", REMEDIES, ids=errno.errorcode.get)
def test_each_refusal_has_its_remedy(tmp_path: Path, code: int) -> None:
    path = str(tmp_path / "not" / "yet" / "there")
    error = refused_write(path, OSError(code, "as some library says it"), 12)
    assert isinstance(error, StorageError)
    is_temporary = REMEDIES[code] == "answers again"
    assert error.kind is (ErrorKind.RETRY if is_temporary else ErrorKind.FIX)
    free = r"; \d+ bytes are free there" if code in (errno.ENOSPC, errno.EDQUOT) else ""
    text = rf"{path} cannot be written \(12 bytes\): {re.escape(os.strerror(code))}{free}\. Nothing of this commit is "
    found = re.fullmatch(rf"{text}visible\. ([^.]+), and run it again\.", str(error))
    assert found is not None and REMEDIES[code] in found[1]
    deletion = str(refused_deletion(path, OSError(code, "as some library says it")))
    assert deletion == f"{path} cannot be deleted: {os.strerror(code)}. {found[1]}, and run it again."


def test_a_refusal_without_a_code_or_size_has_the_systems_text_on_one_line() -> None:
    assert str(refused_write("/t/x", OSError("out\nof   luck"))) == (
        "/t/x cannot be written: out of luck. Nothing of this commit is visible. Fix the cause, and run it again."
    )
