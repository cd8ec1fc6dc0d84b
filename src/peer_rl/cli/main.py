"""Entry point: finds the subcommand and turns every error that the user can fix into one line."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from peer_rl.errors import ConfigError, PeerError, nearest
from peer_rl.packages import require_trainer
from peer_rl.version import __version__

COMMANDS = {
    "train": "train one run; the same command resumes it",
    "eval": "evaluate a run's policy",
    "watch": "record a video of a run's policy",
    "export": "write a run's policy as ONNX or TorchScript",
    "report": "write a page with figures and tables of runs",
    "reproduce": "run a table or figure of the paper, then report",
    "compare": "train your own agent with and without PEER, and report whether it helps",
    "xray": "look into the critic of a trained Stable-Baselines3 agent",
    "sweep": "run a grid of agents, tasks, seeds and betas, here or on a Ray cluster",
    "runs": "list runs: state, step, score, size; delete some",
    "list": "list the available agents, tasks and experiments",
    "bench": "measure speed on this machine, compared with other libraries",
    "completion": "completion for bash, zsh and fish",
    "doctor": "check this machine: what is missing, and the command that fixes it",
}
_MODULES = {"list": "listing"}
_RESUMING = ("reproduce", "sweep")


def _help() -> str:
    rows = "\n".join(f"  {name:<10} {about}" for name, about in COMMANDS.items())
    return (
        "peer-rl: PEER for deep reinforcement learning\n\n"
        "usage: peer-rl COMMAND [OPTIONS]\n\n"
        f"commands:\n{rows}\n\n"
        "examples:\n"
        "  peer-rl reproduce gridworld\n"
        "  peer-rl train dqn --task gym/CartPole-v1 --seed 3\n"
        "  peer-rl train dqn --task gym/CartPole-v1 --seed 3 --beta 0\n\n"
        "peer-rl COMMAND --help lists all options of a command."
    )


def main() -> int:
    """Run the command line; returns the exit code."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if arguments else 2
    if arguments[0] == "--version":
        print(f"peer-rl {__version__}")
        return 0
    try:
        return _run(arguments[0], arguments[1:])
    except PeerError as error:
        print(f"peer-rl: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        then = "; the same command resumes: finished runs are kept" * (arguments[0] in _RESUMING)
        print(f"peer-rl: stopped{then}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output went away, as in `peer-rl list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"peer-rl: {error.strerror}: {error.filename}", file=sys.stderr)
        return 2


def _run(name: str, arguments: list[str]) -> int:
    if name not in COMMANDS:
        hint = nearest(name, COMMANDS) or f"; there are: {', '.join(COMMANDS)}"
        raise ConfigError(f"unknown command {name!r}{hint}")
    if name not in ("doctor", "completion"):  # doctor reports what is missing, a script needs nothing
        require_trainer(f"peer-rl {name}")
    module = import_module(f"peer_rl.cli.{_MODULES.get(name, name)}")
    code: int = module.main(arguments)
    return code
