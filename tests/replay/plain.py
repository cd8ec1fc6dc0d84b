"""A slow, plain model of a replay: every step of the run with its whole observations, and replays to compare with."""

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st

from peer_rl.envs.spec import EnvSpec
from peer_rl.replay.make import make_replay
from peer_rl.replay.replay import Replay
from peer_rl.settings.replay import PrioritisedConfig, SequenceConfig
from peer_rl.settings.run import LearningConfig

CPU = torch.device("cpu")
GAMMA = 0.9
ENDS = st.sampled_from(["no end"] * 5 + ["life lost", "terminated", "truncated"])


@dataclass(frozen=True)
class Step:
    """What ``Replay.add`` receives, and the rows of the frames that its observation shows."""

    obs: np.ndarray
    action: int
    reward: float
    next_obs: np.ndarray
    discount: float
    last: bool
    frames: list[int]


class PlainReplay:
    """Plays steps of random frames into a list, and into a real replay at the same time."""

    def __init__(self, stack: int, shape: tuple[int, ...], seed: int = 0) -> None:
        self.stack, self.shape = stack, shape
        self.rng = np.random.default_rng(seed)
        self.steps: list[Step] = []
        self.frames = 0
        self.episode: list[tuple[int, np.ndarray]] = []  # the current episode's frames and their numbers

    def play(self, replay: Replay, end: str) -> None:
        if not self.episode:
            self._see()
        obs, rows = self._stacked()
        self._see()
        step = Step(
            obs=obs,
            action=len(self.steps),
            reward=len(self.steps) + 1.0,
            next_obs=self._stacked()[0],
            discount=0.0 if end in ("terminated", "life lost") else 1.0,
            last=end in ("terminated", "truncated"),
            frames=rows,
        )
        self.steps.append(step)
        replay.add(**{name: value for name, value in vars(step).items() if name != "frames"})
        if step.last:
            self.episode = []

    def _see(self) -> None:
        self.episode.append((self.frames, self.rng.integers(1, 256, self.shape, dtype=np.uint8)))
        self.frames += 1

    def _stacked(self) -> tuple[np.ndarray, list[int]]:
        seen = self.episode[-self.stack :]
        blanks = [np.zeros(self.shape, np.uint8)] * (self.stack - len(seen))
        return np.concatenate([*blanks, *(frame for _, frame in seen)]), [number for number, _ in seen]

    def window(self, start: int, n_step: int) -> tuple[float, float, np.ndarray]:
        """Return, discount and next observation of the window that starts at a step."""
        total, discount = 0.0, 1.0
        for step in self.steps[start : start + n_step]:
            total += discount * step.reward
            discount *= GAMMA * step.discount
            if step.last or step.discount == 0:
                break
        return total, discount, step.next_obs

    def drawable(self, capacity: int) -> list[int]:
        """Steps of which every frame is among the newest ``capacity``."""
        return [i for i, step in enumerate(self.steps) if min(step.frames) >= self.frames - capacity]


def frame_spec(stack: int, shape: tuple[int, ...]) -> EnvSpec:
    return EnvSpec((stack * shape[0], *shape[1:]), "uint8", stack=stack, actions=4)


def vector_spec(size: int) -> EnvSpec:
    return EnvSpec((size,), "float32", actions=4)


@dataclass(frozen=True)
class PrioritisedSequences(SequenceConfig, PrioritisedConfig):
    """Windows of steps, with priorities."""


def replay_of(
    spec: EnvSpec,
    capacity: int,
    n_step: int = 1,
    batch_size: int = 4,
    *,
    flat_returns: bool = False,
    **priorities: float,
) -> Replay:
    """``priorities`` are PrioritisedConfig's own settings, or ``sequence_length``; without them it is uniform."""
    kind: type[LearningConfig] = PrioritisedConfig if priorities else LearningConfig
    if "sequence_length" in priorities:
        kind = PrioritisedSequences if len(priorities) > 1 else SequenceConfig
    sizes = {"batch_size": min(batch_size, capacity), "buffer_size": capacity}
    learning = kind(gamma=GAMMA, n_step=n_step, flat_returns=flat_returns, **sizes, **priorities)
    return make_replay(learning, spec, CPU)
