"""Seeds of the tests: `make test` draws the same samples in every run, `make fuzz` uses another seed in each run."""

from __future__ import annotations

import os
import secrets
from random import Random, seed
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from lakelsm import environment
from tests.examples import examples

#: The number of examples of an ordinary property in `make fuzz`.
FUZZ_EXAMPLES = int(os.environ.get("LAKELSM_FUZZ_EXAMPLES", "2000"))
_SEED_OPTION = "--hypothesis-seed"

#: The seed of a run of `make fuzz`; 0 in `make test`.
_first_seed = 0
_ids = Random()


class _SeededIds:
    """Replaces the module ``uuid`` in `lakelsm.environment`."""

    @staticmethod
    def uuid4() -> UUID:
        return UUID(int=_ids.getrandbits(128), version=4)


def fix() -> None:
    """Set the seeds. Call it once in a test process, before test modules are imported: they read the profile.

    ``default`` derives each property's seed from its test, and keeps no database of examples. ``fuzz`` has the seed
    of its run (`choose_seed`).
    """
    settings.register_profile(
        "default", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.register_profile(
        "fuzz",
        derandomize=False,
        database=None,
        deadline=None,
        max_examples=FUZZ_EXAMPLES,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("default")
    # Hypothesis draws constants from the sources of all loaded modules. These depend on the tests that ran
    # before in the process.
    if hasattr(providers, "_get_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants
    environment.uuid = _SeededIds  # type: ignore[assignment]
    os.register_at_fork(after_in_child=_ids.seed)  # Two processes never make the same id.


def choose_seed(config: pytest.Config) -> None:
    """Set the seed of a run of the profile ``fuzz``: from the command line, from the parent process, or a random one."""
    global _first_seed
    if config.getoption("--hypothesis-profile") == "fuzz":
        shared = getattr(config, "workerinput", {}).get(_SEED_OPTION)
        _first_seed = int(config.getoption(_SEED_OPTION) or shared or secrets.randbelow(1 << 32))
        config.option.hypothesis_seed = str(_first_seed)


def share_seed(worker: dict[str, Any]) -> None:
    """Send the seed of the run to one of its processes."""
    worker[_SEED_OPTION] = str(_first_seed)


def described(config: pytest.Config) -> str:
    """Return one line that states how the run draws, and how to repeat a run of ``fuzz``."""
    if config.getoption("--hypothesis-profile") != "fuzz":
        return "chance: fixed (Hypothesis is derandomized, samples begin at seed 0); `make fuzz` searches at random"
    again = f"make fuzz SEED={_first_seed} EXAMPLES={FUZZ_EXAMPLES} ARGS=<test>"
    return f"chance: random search from seed {_first_seed}; repeat a find with: {again}"


def is_fixed() -> bool:
    """Return whether the run has the fixed seeds, so that a test may also check the content of its samples."""
    return settings().derandomize


def seeds(usual: int, fuzz: int | None = None) -> range:
    """Return seeds of samples that Hypothesis does not draw: ``usual`` seeds from 0 on in `make test`.

    In `make fuzz` they are ``fuzz`` seeds from the seed of the run on (by default more, in the proportion of `examples`).
    Call it when a test module is imported.
    """
    if is_fixed():
        return range(usual)
    return range(_first_seed, _first_seed + (examples(usual).max_examples if fuzz is None else fuzz))


def begin(test: str) -> None:
    """Seed the ids and random numbers of this process for a test, whatever ran before it."""
    seed(f"{_first_seed} {test}")
    _ids.seed(f"{_first_seed} {test}")
