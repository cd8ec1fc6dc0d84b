"""A run's choices about its environment, for tasks that allow them. Imports no simulator."""

from __future__ import annotations

from dataclasses import replace

from peer_rl.errors import ConfigError
from peer_rl.settings.agents import find_agent
from peer_rl.settings.fields import check_positive
from peer_rl.settings.pixel_sac import TABLE_DMC_CURL
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.suites import Layer, Value
from peer_rl.settings.tasks import Rendering, Task, find_task


def task_of(config: AnyRunConfig) -> Task:
    """The run's task with the action repeat, the frames and the version that the run chose."""
    task = find_task(config.task)
    if config.mujoco_version == "v4":
        task = _version_4(task)
    if task.suite == "atari":
        game = {"screen_size": config.image_size, "repeat_action_probability": config.sticky_actions}
        task = replace(task, options=tuple((name, value) for name, value in game.items() if value is not None))
    return replace(
        task, action_repeat=config.action_repeat or task.action_repeat, stack=config.frame_stack or task.stack
    )


def _version_4(task: Task) -> Task:
    """The same MuJoCo task in Gymnasium's v4, which observes what was left out of v5: forces that are always 0."""
    options = (("use_contact_forces", True),) if task.name == "mujoco/ant" else ()
    dimensions = task.paper_dimensions
    return replace(task, make=task.make.replace("-v5", "-v4"), options=options, dimensions=dimensions, note="")


def with_frames(config: AnyRunConfig, frames: int) -> AnyRunConfig:
    """The run with its budget in environment frames instead of agent steps."""
    check_positive("frames", frames)
    repeat = task_of(config).action_repeat
    if frames % repeat:
        raise ConfigError(f"--frames {frames} is not a multiple of {config.task}'s action repeat, {repeat}")
    return replace(config, steps=frames // repeat, episodes=None)


def sees_pixels(agent: str, task: Task) -> bool:
    """Whether a task with both a state and images renders images for the agent."""
    return task.suite == "dmc" and find_agent(agent).observations == "frames"


def rendering_of(config: AnyRunConfig) -> Rendering | None:
    """What the task draws for the run's agent; None where it shows what it always shows."""
    if not sees_pixels(config.agent, find_task(config.task)):
        return None
    return Rendering(config.image_size or Rendering.size, config.render_quality or Rendering.quality)


def table_layer(agent: str, task: Task) -> Layer:
    """The task table's values for what a run may choose, so that its config holds them all."""
    if not task.free_repeat:
        return {}
    layer: Layer = {"action_repeat": Value(task.action_repeat, TABLE_DMC_CURL)}
    if sees_pixels(agent, task):
        layer |= {
            "image_size": Value(Rendering.size, "DrQ's code: 84x84"),
            "frame_stack": Value(task.stack, TABLE_DMC_CURL),
            "render_quality": Value(Rendering.quality, "DMControl's own"),
        }
    return layer


def check_environment(config: AnyRunConfig) -> None:
    """Refuse a choice that the task does not leave."""
    task = find_task(config.task)
    if config.action_repeat is not None and not task.free_repeat:
        raise ConfigError(
            f"task {task.name} has a fixed action repeat, {task.action_repeat}; leave out --action-repeat"
        )
    if config.mujoco_version is not None and task.suite != "mujoco":
        raise ConfigError(f"task {task.name} is not a MuJoCo task; leave out --mujoco-version")
    if config.sticky_actions is not None and task.suite != "atari":
        raise ConfigError(f"task {task.name} is not an Atari task; leave out --sticky-actions")
    if sees_pixels(config.agent, task):
        return
    # whether any other task shows images, which frame_stack needs, is known once the environment is made
    drawn = {"dmc": ("image_size", "render_quality", "frame_stack"), "atari": ("render_quality",)}
    for name in drawn.get(task.suite, ("image_size", "render_quality")):
        if getattr(config, name) is not None:
            option = "--" + name.replace("_", "-")
            raise ConfigError(f"task {task.name} renders no frames for {config.agent}; leave out {option}")
