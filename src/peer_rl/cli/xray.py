"""``peer-rl xray MODEL.zip --algo td3 --env ID --trust``: a page about a trained critic's representation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.errors import ConfigError
from peer_rl.packages import from_extra
from peer_rl.settings.fields import check

_ALGORITHMS = {"td3": "TD3", "ddpg": "DDPG", "sac": "SAC", "dqn": "DQN", "tqc": "TQC", "qrdqn": "QRDQN"}


@dataclass(frozen=True)
class XRayOptions:
    """Play a few episodes with a trained Stable-Baselines3 agent and write a page about its critic's representation."""

    model: Positional[Path]
    """The zip that model.save wrote."""
    algo: Literal["td3", "ddpg", "sac", "dqn", "tqc", "qrdqn"]
    """The algorithm that it was trained with."""
    env: str
    """A Gymnasium id: the environment that it was trained in."""
    trust: bool = False
    """Load the zip, although it holds pickled code that runs when it is loaded."""
    normalize: Path | None = None
    """The file of VecNormalize's statistics, if the agent was trained with it; pickled as well."""
    episodes: int = 3
    """Episodes to play, without exploration; 2,000 steps at most."""
    seed: int = 0
    """Seed of the first episode."""
    out: Path = Path("xray")
    """Where the page goes."""


def main(arguments: list[str]) -> int:
    """Load, play, write, and print where the page is."""
    options = parse(XRayOptions, arguments, prog="peer-rl xray")
    check(options, positive="episodes", not_negative="seed")
    if not options.trust:
        raise ConfigError(
            f"{options.model} holds pickled code, which runs when it is loaded: add --trust if you trust its source"
        )
    if not options.model.is_file():
        raise ConfigError(f"there is no file {options.model}; name the zip that model.save wrote")
    with from_extra("sb3,report", "xray"):
        print(_write(options))
    return 0


def _write(options: XRayOptions) -> Path:
    import gymnasium as gym
    import sb3_contrib
    import stable_baselines3
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

    from peer_rl.report.xray import xray

    name = _ALGORITHMS[options.algo]
    kind = getattr(stable_baselines3, name, None) or getattr(sb3_contrib, name)
    try:
        model = kind.load(options.model, device="auto")
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{options.model} cannot be loaded as {name}: {type(error).__name__}: {reason}") from error
    env: VecEnv | str = options.env
    if options.normalize:
        env = VecNormalize.load(str(options.normalize), DummyVecEnv([lambda: gym.make(options.env)]))
    return xray(model, env, out=options.out, episodes=options.episodes, seed=options.seed)
