"""Comparisons of the demo's answers with plain pandas."""

from __future__ import annotations

import pyarrow as pa
from demo_screen import Screen


class Verdicts:
    """Counts the answers, and keeps the names of those that differ."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.checks = 0
        self.differences: list[str] = []

    def add(self, name: str, equal: bool) -> str:
        """Write one verdict, and return its text."""
        self.checks += 1
        if not equal:
            self.differences.append(name)
        text = "equal to plain pandas" if equal else "DIFFERS from plain pandas"
        self.screen.say(f"   {name}: {text}")
        return text

    def rows(self, found: pa.Table, want: pa.Table, key: list[str]) -> str:
        """Compare tables and write the verdict. ``found`` may be in any order, ``want`` is in key order."""
        schema = pa.schema([pa.field(field.name, field.type) for field in want.schema])
        name = f"{found.num_rows:,} rows x {found.num_columns} columns"
        ordered = found.select(schema.names).cast(schema).sort_by([(column, "ascending") for column in key])
        return self.add(name, ordered.combine_chunks().equals(want.cast(schema).combine_chunks()))

    def conclude(self) -> int:
        """Write the result of all comparisons, and return the exit status: 0 if all answers are equal, else 1."""
        if self.differences:
            self.screen.say(
                f"{len(self.differences)} of {self.checks} answers DIFFER: {'; '.join(self.differences)}"
            )
            return 1
        self.screen.say(f"All {self.checks} answers equal those of plain pandas.")
        return 0
