"""How many examples a property test runs: in `make test` as many as it says, in `make fuzz` more in proportion."""

from __future__ import annotations

from hypothesis import settings

#: Examples of a property that says nothing, in `make test`; `make fuzz` has EXAMPLES instead.
USUAL = 100


def examples(number: int) -> settings:
    """Settings for a property of which ``number`` examples are right where the usual one has 100.

    To be called when a test module is imported: by then the profile is chosen.
    """
    return settings(max_examples=max(1, number * settings().max_examples // USUAL))
