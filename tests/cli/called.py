"""Calls of verbs in this process on a real table, with their output and files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakelsm.cli.main import main
from tests.cli.fake_table import last_object


@dataclass(frozen=True)
class Called:
    """Calls verbs on the table db.t of a warehouse."""

    warehouse: Path
    capsys: pytest.CaptureFixture[str]

    def text(self, *arguments: str, status: int = 0) -> str:
        """Return the standard output of a verb."""
        assert main([*arguments, *self._named]) == status
        output = self.capsys.readouterr()
        assert output.err == ""
        return output.out

    def json(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        """Return the JSON report of a verb."""
        assert main([*arguments, *self._named, "--report", "json"]) == status
        found = last_object(self.capsys.readouterr().out)
        assert found["exit_status"] == status
        return found

    def error(self, *arguments: str, status: int = 1) -> str:
        """Return the line on standard error of a verb that fails."""
        assert main([*arguments, *self._named]) == status
        output = self.capsys.readouterr()
        assert output.out == "" and output.err.count("\n") == 1
        return output.err

    def usage(self, *arguments: str) -> str:
        """Return the last line of the output for a wrong command line."""
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *self._named])
        assert ended.value.code == 2
        return self.capsys.readouterr().err.splitlines()[-1]

    def files(self) -> dict[str, bytes]:
        """Return every file of the warehouse with its content."""
        return {str(path): path.read_bytes() for path in self.warehouse.rglob("*") if path.is_file()}

    def planned(self, *arguments: str) -> dict[str, Any]:
        """Return the JSON report of a dry run, which must change no byte."""
        before = self.files()
        found = self.json(*arguments, "--dry-run")
        assert self.files() == before
        assert found["status"] == "planned"
        return found

    @property
    def _named(self) -> list[str]:
        return ["--warehouse", str(self.warehouse), "--table", "db.t"]
