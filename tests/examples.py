"""The number of examples of property tests: as declared in `make test`, in proportion more in `make fuzz`."""

from __future__ import annotations

from hypothesis import settings

#: Examples of a property without settings in `make test`; `make fuzz` has EXAMPLES instead.
USUAL = 100


def examples(number: int) -> settings:
    """Return settings with ``number`` examples in `make test`, where a property without settings has 100.

    Call it when a test module is imported: the profile is chosen before.
    """
    return settings(max_examples=max(1, number * settings().max_examples // USUAL))
