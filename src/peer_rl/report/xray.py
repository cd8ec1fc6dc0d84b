"""``peer-rl xray``: a page about a trained critic's representation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from peer_rl.errors import ConfigError
from peer_rl.plugin import Features
from peer_rl.plugin.check import check_critic
from peer_rl.plugin.diagnostics import Report, diagnose_features, drd
from peer_rl.plugin.layers import LayerHealth, layer_health
from peer_rl.plugin.tap import RepresentationTap
from peer_rl.report import page
from peer_rl.report.charts import Chart
from peer_rl.report.tables import Table, number
from peer_rl.report.xray_charts import projection_chart, time_chart
from peer_rl.version import __version__

_SHOWN_EPISODES = 3


@dataclass(frozen=True)
class XRay:
    """What was found in a critic."""

    name: str
    about: str
    """What the rows are."""
    check: str
    """What `check_critic` found, or why it found nothing."""
    features: Features
    report: Report
    layers: list[LayerHealth]
    episode: np.ndarray[Any, Any]
    returns: list[float] = field(default_factory=list)


def xray(
    model: Any,
    env: Any = None,
    *,
    out: Path | str = "xray",
    episodes: int = 3,
    seed: int = 0,
    batch: Any = None,
    next_batch: Any = None,
    target: nn.Module | None = None,
    reward: Tensor | None = None,
    gamma: float | Tensor | None = None,
    same_action: Tensor | None = None,
) -> Path:
    """Write a page about a critic's representation; returns the page's path. The agent needs no PEER.

    A Stable-Baselines3 model plays ``episodes`` in ``env`` (an id, an environment or a VecEnv) without exploration.
    Any other critic, an nn.Module, takes ``batch``, its inputs at (s, a), and ``next_batch``, the inputs of ``target``
    at (s', a') with the a' of the TD target; with reward and gamma, as in `diagnose`, the page has DRD, too.
    """
    if isinstance(model, nn.Module):
        found = xray_critic(
            model, batch, next_batch, target=target, reward=reward, gamma=gamma, same_action=same_action
        )
    else:
        found = xray_model(model, env, episodes=episodes, seed=seed)
    return write_xray(found, Path(out))


def xray_model(model: Any, env: Any, *, episodes: int = 3, seed: int = 0) -> XRay:
    """Play episodes with a Stable-Baselines3 model and look at its critic on them."""
    from peer_rl.sb3.rollout import play

    if env is None:
        raise ConfigError("name the environment that the model plays in: xray(model, 'Pendulum-v1')")
    rollout = play(model, env, episodes=episodes, seed=seed)
    name = type(model).__name__
    about = f"{len(rollout.episode)} transitions of {len(rollout.returns)} whole episodes, played without exploration"
    return XRay(
        name,
        about,
        _checked(rollout.critic, rollout.inputs).partition("\nuse:")[0],  # taps are for critics of one's own
        rollout.features,
        diagnose_features(rollout.features),
        layer_health(rollout.critic, *rollout.inputs),
        rollout.episode,
        rollout.returns,
    )


def xray_critic(
    critic: nn.Module,
    batch: Any,
    next_batch: Any,
    *,
    target: nn.Module | None = None,
    reward: Tensor | None = None,
    gamma: float | Tensor | None = None,
    same_action: Tensor | None = None,
) -> XRay:
    """Look at any critic on a batch, a tensor or a tuple of them; rows are taken as consecutive steps of an episode."""
    if batch is None or next_batch is None:
        raise ConfigError("a critic of your own needs batch=(obs, action) and next_batch=(next_obs, next_action)")
    batch, next_batch = (each if isinstance(each, tuple | list) else (each,) for each in (batch, next_batch))
    network = critic if target is None else target
    with torch.no_grad(), RepresentationTap(critic) as tap:
        critic(*batch)
        phi, weight = tap.phi, tap.head_weight
    with torch.no_grad(), RepresentationTap(network) as tap:
        network(*next_batch)
        features = Features(phi, tap.phi)
    if reward is not None and gamma is not None:
        discount = gamma if isinstance(gamma, Tensor) else torch.full_like(reward, gamma)
        features = Features(
            phi, features.phi_next, head_weight=weight, reward=reward, discount=discount, same_action=same_action
        )
    rows = phi.shape[-2]
    return XRay(
        type(critic).__name__,
        f"a batch of {rows} rows",
        _checked(critic, batch, target),
        features,
        diagnose_features(features),
        layer_health(critic, *batch),
        np.zeros(rows, dtype=np.int64),
    )


def _checked(critic: nn.Module, inputs: tuple[Any, ...], target: nn.Module | None = None) -> str:
    try:
        return str(check_critic(critic, *inputs, target=target))
    except (TypeError, ValueError) as error:
        return f"not checked: {error}"


def unusual(found: XRay) -> list[str]:
    """What stands out, one sentence each; empty for an ordinary critic."""
    report, lines = found.report, []
    for layer in found.layers:
        if layer.dormant_fraction > 0.25:
            share = f"{100 * layer.dormant_fraction:.0f} %"
            lines.append(
                f"{share} of the {layer.units} units of {layer.name} are dormant: they are about 0 on every row."
            )
    if report.effective_rank < 0.05 * min(found.features.phi.shape[-1], found.features.phi.shape[-2]):
        lines.append(
            f"phi uses {report.effective_rank:.0f} of {found.features.phi.shape[-1]} directions: near collapse."
        )
    if report.cosine > 0.99:
        lines.append(f"phi and phi' are nearly parallel (cosine {report.cosine:.4f}): steps are hard to distinguish.")
    if report.feature_norm > 1e3:
        lines.append(f"phi is very long (mean norm {report.feature_norm:.3g}), as when values diverge.")
    if report.signed_fraction > 0:
        share = f"{100 * report.signed_fraction:.0f} %"
        lines.append(f"{share} of phi's entries are negative: use CosinePEER instead of PEER.")
    if report.bellman_gap > 0:
        lines.append(f"The mean Bellman gap is {report.bellman_gap:.3g}: no exact Q function has these features.")
    return lines


def layer_table(layers: Sequence[LayerHealth]) -> Table:
    """One row for each hidden layer."""
    rows = [
        [
            layer.name,
            str(layer.units),
            f"{100 * layer.dormant_fraction:.1f} %",
            number(layer.effective_rank, 0),
            number(layer.entropy_rank, 1),
            number(layer.weight_norm, 2),
            number(layer.feature_norm, 2),
            f"{100 * layer.positive_fraction:.0f} %",
        ]
        for layer in layers
    ]
    caption = (
        "Hidden layers, in the order in which they run. Dormant: mean |activation| at most 2.5 % of the layer's mean; "
        "unusual above 25 %. Effective rank: srank with delta 0.01; entropy rank: exp of the entropy of the singular "
        "values; unusual below 5 % of the units. Norms: Frobenius norm of the weights, mean norm of a row of features. "
        "Positive: entries above 0, about half after a ReLU at initialisation."
    )
    header = ["layer", "units", "dormant", "effective rank", "entropy rank", "weight norm", "feature norm", "positive"]
    return Table(caption, header, rows)


_HEAD = (
    (
        "cosine",
        "Cosine of phi and phi'",
        "similarity of a step and the next",
        "above 0.99: steps are hard to distinguish",
    ),
    ("drd", "DRD", "cosine minus the paper's bound", "above 0 the paper's property fails; rescaling phi changes it"),
    ("drd_share_positive", "Fraction with DRD above 0", "rows where the property fails", "says little alone"),
    ("bellman_gap", "Bellman gap", "cosine minus the bound of an exact Q function", "above 0"),
    ("feature_norm", "Norm of phi", "mean length at (s, a)", "above 1,000: values may diverge"),
    ("next_feature_norm", "Norm of phi'", "the target's at (s', a')", "far from that of phi"),
    ("head_norm", "Norm of the last layer", "|w|, with which Q = phi w + b", "0: Q does not depend on phi"),
    ("effective_rank", "Effective rank of phi", "directions in use, srank 0.01", "below 5 % of the units"),
    ("dormant_fraction", "Dormant units of phi", "fraction about 0 on every row", "above 25 %"),
    ("signed_fraction", "Negative entries of phi", "fraction", "above 0: PEER is unbounded below"),
)

_FRACTIONS = ("drd_share_positive", "dormant_fraction", "signed_fraction")


def head_table(report: Report) -> Table:
    """The numbers of the last layer, what each means, and what would be unusual."""
    values = report.as_dict()
    rows = []
    for name, title, meaning, strange in _HEAD:
        value = values[name]
        if value is None:
            shown = "not defined for this critic"
        elif name in _FRACTIONS:
            shown = f"{100 * value:.0f} %"
        else:
            shown = number(float(value), 1 if name == "effective_rank" else 3)
        rows.append([title, shown, meaning, strange])
    caption = f"The last layer's input phi and the target's phi', means over {report.rows} rows (times heads)."
    return Table(caption, ["quantity", "value", "what it is", "unusual"], rows)


def write_xray(found: XRay, out: Path) -> Path:
    """Write the page."""
    strange = unusual(found)
    answer = f"{len(strange)} things stand out." if len(strange) > 1 else "One thing stands out."
    if not strange:
        answer = "Nothing unusual: no layer is dormant or collapsed, and phi distinguishes one step from the next."
    reward = f" Mean return {np.mean(found.returns):.2f}." if found.returns else ""
    sections = [
        page.section("The answer", page.Text(answer, "answer"), page.Bullets(strange) if strange else None),
        page.section("Along an episode", _time_charts(found), page.Text(_TIME_NOTE, "soft")),
        page.section("The last layer", head_table(found.report)),
        page.section("Hidden layers", layer_table(found.layers)),
        page.section(
            "Would PEER be safe here?", page.Bullets([" ".join(line.split()) for line in _lines(found.check)])
        ),
    ]
    lead = f"{found.about}.{reward} Made by peer-rl {__version__}."
    text = page.render(f"X-ray of a {found.name} critic", lead, sections, switch=False)
    page.write_files(out, {"xray.html": text})
    return out / "xray.html"


_TIME_NOTE = (
    "The first critic's phi and the target's phi'. In the projection, both are shown on the two directions in which "
    "they vary most, coloured by time: healthy features spread an episode out, collapsed ones draw a line or a point."
)


def _lines(check: str) -> list[str]:
    """The findings, with continued lines joined."""
    lines: list[str] = []
    for line in check.splitlines():
        if line.startswith(" ") and lines:
            lines[-1] += f"{';' * lines[-1].startswith('use:')} {line.strip()}"
        else:
            lines.append(line)
    return lines


def _first_head(features: Features) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    phi, phi_next = (x[0] if x.dim() == 3 else x for x in (features.phi.detach(), features.phi_next.detach()))
    return phi.double().cpu().numpy(), phi_next.double().cpu().numpy()


def _time_charts(found: XRay) -> list[Chart]:
    phi, phi_next = _first_head(found.features)
    norms = np.linalg.norm(phi, axis=1) * np.linalg.norm(phi_next, axis=1)
    cosine = np.divide((phi * phi_next).sum(1), norms, out=np.full(len(phi), math.nan), where=norms > 0)
    charts = [time_chart("Cosine of phi and phi'", cosine, found.episode, _SHOWN_EPISODES)]
    features = found.features
    if features.head_weight is not None and features.reward is not None and features.discount is not None:
        values = drd(
            features.phi,
            features.phi_next,
            head_weight=features.head_weight,
            reward=features.reward,
            gamma=features.discount,
            same_action=features.same_action,
        )
        first = (values[0] if values.dim() == 2 else values).cpu().numpy()
        charts.append(time_chart("DRD (above 0 the paper's property fails)", first, found.episode, _SHOWN_EPISODES))
    charts.append(projection_chart("Projection of phi and phi', first episode", phi, phi_next, found.episode))
    return charts
