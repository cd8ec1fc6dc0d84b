"""A value has one home: a layer lists only what differs from the layers below it."""

from collections import Counter

import pytest

from peer_rl.settings import as_dict
from peer_rl.settings.environment import table_layer
from peer_rl.settings.resolve import _blank, _of_agent, apply
from peer_rl.settings.suites import _blocks, agents_of, presets_of
from peer_rl.settings.tasks import TASKS, find_task

SUITES = ("gridworld", "pybullet", "mujoco", "dmc", "atari", "gym")


def blocks_for(agent: str, suite: str, task: str, **named: str):
    """The blocks that apply to a run, in order, each with its place in its file."""
    kinds = [(suite, {}), (suite, {"tasks": task})]
    kinds += [(file, {kind: name}) for kind, name in named.items() for file in (suite, "any")]
    if "preset" in named:
        kinds.append((suite, {"tasks": task, **named}))
    for file, wanted in kinds:
        for place, (selectors, layer) in enumerate(_blocks(file)):
            own = {key: value for key, value in selectors.items() if key != "agents"}
            if "tasks" in own:
                own["tasks"] = task if task in own["tasks"] else ""
            if own == wanted and agent in selectors.get("agents", [agent]):
                yield file, place, layer, "profile" in own


def count_changes(counts: Counter, agent: str, suite: str, task: str, **named: str) -> None:
    """How often each value changed something."""
    config = apply(_blank(agent, task), table_layer(agent, find_task(task)), {})
    for file, place, layer, of_profile in blocks_for(agent, suite, task, **named):
        before = as_dict(config)
        kept = _of_agent(config, layer) if of_profile else layer
        config = apply(config, kept, {})
        after = as_dict(config)
        for path in kept:
            counts[file, place, path] += before.get(path) != after.get(path)


@pytest.fixture(scope="module")
def changes() -> Counter:
    counts: Counter = Counter()
    for suite in SUITES:
        tasks = [name for name in TASKS if name.startswith(f"{suite}/")] or ["gym/X-v0"]
        for agent in agents_of(suite):
            for task in tasks:
                for profile in ("small", "smoke"):
                    count_changes(counts, agent, suite, task, profile=profile)
                for preset in presets_of(agent):
                    count_changes(counts, agent, suite, task, preset=preset)
    return counts


def test_every_value_of_every_layer_changes_some_run(changes):
    assert [path for path, count in changes.items() if not count] == []


def test_every_value_was_looked_at(changes):
    written = sum(len(layer) for file in (*SUITES, "any") for _, layer in _blocks(file))
    assert len(changes) == written
