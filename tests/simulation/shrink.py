"""Finds a smaller scenario that fails too: with fewer actors, actions, reruns and faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.simulation.scenario import Actor, Scenario

#: The number of schedules tried for each smaller scenario: what is removed shifts all later choices.
_SCHEDULES = 20


def shrunk(scenario: Scenario, fails: Callable[[Scenario], bool], max_runs: int = 4000) -> Scenario:
    """Return the smallest failing scenario that is found within ``max_runs`` runs. REQUIRES: ``fails(scenario)``."""
    runs = 0
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(scenario):
            found = None
            for schedule in [scenario.schedule, *range(_SCHEDULES)]:
                if runs >= max_runs:
                    return scenario
                runs += 1
                candidate = replace(smaller, schedule=schedule)
                if fails(candidate):
                    found = candidate
                    break
            if found is not None:
                scenario, progress = found, True
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Yield scenarios with one part less, the largest part first."""
    actors = scenario.actors
    if scenario.founder is not None:
        yield replace(scenario, founder=None)
        yield from (replace(scenario, founder=simpler) for simpler in _simpler(scenario.founder))
    for at in range(len(actors)):
        if len(actors) > 1:
            yield replace(scenario, actors=actors[:at] + actors[at + 1 :])
    for at, actor in enumerate(actors):
        for simpler in _simpler(actor):
            yield replace(scenario, actors=(*actors[:at], simpler, *actors[at + 1 :]))


def _simpler(actor: Actor) -> Iterator[Actor]:
    actions, faults = actor.actions, actor.faults
    for at in range(len(actions)):
        if len(actions) > 1:
            yield replace(actor, actions=actions[:at] + actions[at + 1 :])
    for at in range(len(faults)):
        yield replace(actor, faults=faults[:at] + faults[at + 1 :])
    if actor.skew:
        yield replace(actor, skew=0)
    for at, action in enumerate(actions):
        simpler = [replace(action, reruns=0)] if action.reruns else []
        simpler += [replace(action, again=False)] if action.again else []
        simpler += [replace(action, rows=action.rows[1:])] if len(action.rows) > 1 else []
        simpler += [replace(action, keys=action.keys[1:])] if len(action.keys) > 1 else []
        for one in simpler:
            yield replace(actor, actions=(*actions[:at], one, *actions[at + 1 :]))
