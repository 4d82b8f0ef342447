"""Environments of other engines: one virtual environment each, created once and kept.

They are in ``$LAKELSM_INTEROP_ENVS`` (default: ``.venv-interop`` of the repository, which ``make clean`` keeps).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

_DEFAULT = Path(__file__).resolve().parents[2] / ".venv-interop"
_PIP_SECONDS = 900


def root() -> Path:
    """Return the directory of all environments and of downloaded jars."""
    folder = Path(os.environ.get("LAKELSM_INTEROP_ENVS", _DEFAULT))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def python_with(name: str, requirements: Sequence[str]) -> str:
    """Return the Python of an environment with ``requirements``; skip the test, by name, if it cannot be created."""
    version = "{}.{}".format(*sys.version_info[:2])
    digest = hashlib.sha256("\n".join([sys.executable, version, *requirements]).encode()).hexdigest()[:8]
    folder = root() / f"{name}-py{version}-{digest}"
    python = folder / "bin" / "python"
    with _alone(f"{folder.name}.lock"):
        if not (folder / "complete").exists():
            _make(name, folder, python, requirements)
            (folder / "complete").touch()
    return str(python)


def _make(name: str, folder: Path, python: Path, requirements: Sequence[str]) -> None:
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
    for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], install):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"{name}: making its environment took more than {_PIP_SECONDS} s")
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            pytest.skip(f"{name}: its environment ({', '.join(requirements)}) cannot be made: {last}")


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """Hold a lock, so that two test runs do not create one environment at the same time."""
    with (root() / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
