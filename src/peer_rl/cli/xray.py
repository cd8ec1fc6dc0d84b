"""``peer-rl xray MODEL.zip --algo td3 --env ID --trust``: a page about a trained critic's representation."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.errors import ConfigError
from peer_rl.packages import from_extra
from peer_rl.settings.fields import NotNegative, Positive, check

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
    episodes: Positive[int] = 3
    """Episodes to play, without exploration; 2,000 steps at most."""
    seed: NotNegative[int] = 0
    """Seed of the first episode."""
    out: Path = Path("xray")
    """Where the page goes."""


def main(arguments: list[str]) -> int:
    """Load, play, write, and print where the page is."""
    options = parse(XRayOptions, arguments, prog="peer-rl xray")
    check(options)
    if not options.trust:
        raise ConfigError(
            f"{options.model} holds pickled code, which runs when it is loaded: add --trust if you trust its source"
        )
    for file in (_zip_of(options.model), options.normalize):
        if file and not file.is_file():
            what = "statistics that VecNormalize.save" if file == options.normalize else "zip that model.save"
            raise ConfigError(f"there is no file {file}; name the {what} wrote")
    with from_extra("sb3,report", "xray"):
        print(_write(options))
    return 0


def _zip_of(model: Path) -> Path:
    """Also without its ending, as Stable-Baselines3 takes it."""
    zipped = model.with_name(f"{model.name}.zip")
    return zipped if zipped.is_file() and not model.exists() else model


def _saved_by(file: Path) -> str:
    """The algorithm whose policy a zip holds, by its readable part; empty if unknown. Nothing is unpickled."""
    try:
        with zipfile.ZipFile(file) as archive:
            module = json.loads(archive.read("data"))["policy_class"]["__module__"]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return ""
    library, _, rest = str(module).partition(".")
    return rest.partition(".")[0] if library in ("stable_baselines3", "sb3_contrib") else ""


def _check_algorithm(options: XRayOptions, file: Path) -> None:
    saved = _saved_by(file)
    if saved == "common":  # the module of ActorCriticPolicy
        raise ConfigError(
            f"{file} holds an actor and a critic without a target network, as PPO and A2C have: "
            f"xray reads {', '.join(_ALGORITHMS)}"
        )
    if saved in ("", options.algo) or (saved, options.algo) == ("td3", "ddpg"):
        return
    then = f"give --algo {saved}" if saved in _ALGORITHMS else f"xray reads {', '.join(_ALGORITHMS)}"
    raise ConfigError(f"{file} holds an agent of {saved.upper()}, not of {options.algo.upper()}: {then}")


def _write(options: XRayOptions) -> Path:
    import sb3_contrib
    import stable_baselines3
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

    from peer_rl.report.xray import xray
    from peer_rl.sb3.rollout import make_env

    name, file = _ALGORITHMS[options.algo], _zip_of(options.model)
    _check_algorithm(options, file)
    kind = getattr(stable_baselines3, name, None) or getattr(sb3_contrib, name)
    try:
        model = kind.load(file, device="auto")
    except Exception as error:
        raise ConfigError(f"{file} cannot be loaded as {name}: {_reason(error)}") from error
    env: VecEnv | str = options.env
    if options.normalize:
        inner = DummyVecEnv([lambda: make_env(options.env)])
        try:
            env = VecNormalize.load(str(options.normalize), inner)
        except Exception as error:
            raise ConfigError(
                f"{options.normalize} cannot be loaded as VecNormalize's statistics: {_reason(error)}"
            ) from error
    return xray(model, env, out=options.out, episodes=options.episodes, seed=options.seed)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
