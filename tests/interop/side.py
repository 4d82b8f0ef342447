"""Another engine, in its process: requests and answers are lines of JSON (see sides/serve.py)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SIDES = Path(__file__).parent / "sides"


class SideError(AssertionError):
    """A failure of the other engine; the message is its traceback."""


class Side:
    """A running engine. Its output is in the file ``log``."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **(environment or {})},
            )

    def call(self, operation: str, **arguments: Any) -> Any:
        """Run one operation in the engine, and return its result."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps([operation, arguments]) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SideError(f"the engine's process ended:\n{self.log_tail()}")
        answer = json.loads(line)
        if "error" in answer:
            raise SideError(f"{operation} failed in the other engine:\n{answer['error']}")
        return answer["result"]

    def log_tail(self, lines: int = 30) -> str:
        """Return the end of the engine's output."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def close(self) -> None:
        """End the process by closing its input."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
