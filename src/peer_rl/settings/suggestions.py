"""What an unknown option may mean: other libraries' names for ours, and names that are only misspelt."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

from peer_rl.errors import nearest

_MEANINGS = {
    "adam-epsilon": "adam-eps optimizer-eps opt-eps",
    "batch-size": "bs batch minibatch-size mini-batch-size train-batch-size",
    "beta": "peer-beta peer-coef peer-weight coef lambda reg-coef reg-weight penalty-weight",
    "buffer-size": "buffer memory memory-size replay-size replay-capacity capacity replay-buffer-size",
    "config": "cfg config-file settings yaml toml",
    "device": "gpu cuda",
    "diagnose-every": "diagnose-freq diagnostics-every",
    "epsilon-final": "eps-end epsilon-end end-e exploration-final-eps",
    "epsilon-start": "eps eps-start start-e epsilon exploration-initial-eps",
    "epsilon-steps": "exploration-fraction epsilon-decay eps-decay",
    "eval-episodes": "n-eval-episodes num-eval-episodes evaluation-episodes",
    "eval-every": "eval-freq eval-interval evaluation-interval eval-frequency",
    "exploration-noise": "expl-noise action-noise noise",
    "gamma": "discount discount-factor",
    "hidden": "hidden-size hidden-sizes hidden-dim hidden-units layers units width net-arch",
    "initial-temperature": "alpha temperature ent-coef entropy-coef init-alpha",
    "learning-rate": "lr step-size learningrate",
    "log-every": "log-interval log-freq log-frequency",
    "max-episode-steps": "time-limit horizon max-episode-length episode-length",
    "max-gradient-norm": "grad-clip clip-grad max-grad-norm gradient-clip clip",
    "out": "output output-dir out-dir outdir",
    "policy-every": "policy-delay policy-freq policy-frequency",
    "regularizer": "reg penalty loss-term",
    "runs": "log-dir logdir save-dir run-dir runs-dir output output-dir out-dir outdir",
    "seed": "random-seed",
    "seeds": "num-seeds n-seeds",
    "start-steps": "learning-starts warmup warmup-steps random-steps initial-steps start-timesteps init-steps",
    "steps": "total-timesteps timesteps num-steps total-steps max-steps train-steps num-timesteps budget",
    "target-every": "target-update target-update-interval target-network-frequency target-update-freq",
    "tau": "polyak soft-update target-tau eta ema",
    "task": "env env-id env-name environment game domain",
    "update-every": "train-freq train-frequency train-every update-frequency",
    "updates": "gradient-steps utd utd-ratio updates-per-step",
    "wandb": "track use-wandb",
    "weight-decay": "wd l2 decay",
    "workers": "jobs n-jobs num-workers processes parallel n-workers",
    "yes": "force no-confirm",
}
_MEANT: dict[str, list[str]] = {}
for _ours, _theirs in _MEANINGS.items():
    for _word in _theirs.split():
        _MEANT.setdefault(_word, []).append(_ours)


def suggest(option: str, known: Collection[str]) -> list[str]:
    """The options of ``known`` that a user may have meant, by meaning first and by spelling then; at most three."""
    name = option.lstrip("-").partition("=")[0].replace("_", "-").lower()
    section, dot, last = name.rpartition(".")
    words = _MEANT.get(name, [])
    if not words:
        words = difflib.get_close_matches(last, {one.rpartition(".")[2] for one in known} | set(_MEANT), 1, 0.7)
        words = [ours for word in words for ours in _MEANT.get(word, [word])]
    found = [one for word in words for one in known if re.fullmatch(rf"(.*[.-])?{re.escape(word)}", one)]
    exact = [one for one in found if one in words or (dot and one.startswith(f"{section}."))]
    return [f"--{one}" for one in dict.fromkeys(exact or found)][:3]


def meant(name: str, known: Collection[str]) -> str:
    """``"; did you mean 'x'?"`` for a setting in a file, by meaning or by spelling, or an empty string."""
    options = {one.replace("_", "-"): one for one in known}
    found = suggest(name, options)
    return f"; did you mean {options[found[0][2:]]!r}?" if found else nearest(name, known)
