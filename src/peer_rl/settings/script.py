"""Settings of the runs behind ``peer-rl compare``: the user's script decides everything else."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.settings.fields import Checked, NotNegative, Positive


@dataclass(frozen=True)
class ScriptConfig:
    """Which code a run was made with."""

    digest: str = ""
    """SHA-256 of the script without comments and layout: runs of different code are not mixed."""
    control: str = ""
    """layer-norm: the critic's hidden layers are normalised, as a control for the regularizer."""


@dataclass(frozen=True)
class ScriptLearning:
    """Replay and update schedule are the script's own."""


@dataclass(frozen=True)
class FunctionProtocol:
    """A training function logs its own returns; the score is the mean of the last ten."""

    final_episodes: int = 0
    """Always 0: the function evaluates."""
    final_steps: int = 0
    """Always 0: the function evaluates."""


@dataclass(frozen=True)
class ModelProtocol(Checked):
    """How a Stable-Baselines3 model is evaluated and diagnosed; none of it changes a weight."""

    evaluations: Positive[int] = 10
    """Evaluations during training, evenly spaced; the last one comes at the end."""
    eval_episodes: Positive[int] = 5
    """Episodes of one evaluation, in an environment of their own."""
    final_episodes: Positive[int] = 20
    """Episodes of the evaluation at the end, which is the score."""
    final_steps: int = 0
    """Always 0: the final evaluation counts episodes."""
    diagnoses: NotNegative[int] = 20
    """Diagnoses of the representation during training, evenly spaced; 0 for none."""
