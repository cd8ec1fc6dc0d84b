"""One image of the grid world's verdicts: every pair's difference to plain DQN, by claim and by encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from peer_rl.report.figures import STYLE, finish, new_figure, plain
from peer_rl.report.gridworld import CLAIMS, Claim, Study, label_of, plain_group
from peer_rl.report.gridworld_tables import CONTROL_LEVEL, SHRINKING, TURNING
from peer_rl.report.scores import Estimate, paired_difference
from peer_rl.settings.run import AnyRunConfig

_CLAIMED, _OPPOSITE, _OPEN = "#0072B2", "#D55E00", "#8a8f98"
_MARKERS = {_CLAIMED: "o", _OPPOSITE: "s", _OPEN: "d"}
_MEANINGS = {
    _CLAIMED: "as the paper claims for PEER",
    _OPPOSITE: "the opposite",
    _OPEN: "not decided, or pairs are missing",
}
_NAMES = {"peer": "PEER", TURNING: "only rotates", SHRINKING: "only shrinks"}
_TITLES = {"b": "(b) final cosine", "c": "(c) error of the Q difference", "d": "(d) steps per episode"}


@dataclass(frozen=True)
class Row:
    """One variant in one panel."""

    name: str
    pairs: list[float]
    """Its differences to plain DQN, by seed."""
    difference: Estimate
    colour: str


def short_name(config: AnyRunConfig) -> str:
    """What a variant is, without the words of the tables."""
    if config.beta:
        return f"{_NAMES.get(config.regularizer, config.regularizer)}, beta {config.beta:g}"
    return label_of(config).partition(", ")[2] or config.agent.upper()


def rows_of(study: Study, claim: Claim, seeds: int) -> list[Row]:
    """Every variant but plain DQN: PEER, its halves, other controls. A control's level is for several comparisons."""
    plain_dqn = plain_group(study.groups)
    summaries = next(one for one in study.summaries if one[0].measure == claim.measure)
    reference = next((one for one in summaries if plain_dqn and one.group.key == plain_dqn.key), None)
    rows = []
    for one in summaries:
        difference = paired_difference(one.values, reference.values) if reference else None
        if reference is None or one is reference or difference is None:
            continue
        decided = difference.decided() if one.group.label in study.paper else difference.decided(CONTROL_LEVEL)
        colour = _OPEN
        if difference.count >= seeds and decided:
            colour = _CLAIMED if difference.value * claim.sign > 0 else _OPPOSITE
        pairs = [one.values[seed] - reference.values[seed] for seed in sorted(one.values.keys() & reference.values)]
        rows.append(Row(short_name(one.group.config), pairs, difference, colour))
    return rows


def draw_verdicts(studies: Sequence[Study], path: Path, seeds: int) -> None:
    """A row of panels for each encoding, a panel for each claim; colours decide with ``seeds`` pairs only."""
    claims = [claim for claim in CLAIMS if claim.decides]
    found = [[rows_of(study, claim, seeds) for claim in claims] for study in studies]
    heights = [0.85 + 0.27 * max(len(rows) for rows in panels) for panels in found]
    with mpl.rc_context(STYLE):
        figure = new_figure(10.5, 0.7 + sum(heights))
        grid: Any = figure.subplots(len(studies), len(claims), squeeze=False, height_ratios=heights)
        for study, panels, line in zip(studies, found, grid, strict=True):
            for claim, rows, axes in zip(claims, panels, line, strict=True):
                _draw(axes, rows, claim)
                axes.set_title(_TITLES[claim.panel])
            line[0].set_ylabel(f"{study.encoding} states", fontweight="bold", fontsize=10.5)
            for axes in line[1:]:
                axes.tick_params(labelleft=False)
        lines = [
            Line2D([], [], color=colour, marker=_MARKERS[colour], linewidth=2, label=words)
            for colour, words in _MEANINGS.items()
        ]
        note = "difference to plain DQN: mean and 95 % interval, a dot for each pair of seeds; shaded: the paper's side"
        figure.legend(handles=lines, loc="outside lower center", ncols=3, title=note, title_fontsize=9)
        finish(figure).save(path)


def _draw(axes: Axes, rows: Sequence[Row], claim: Claim) -> None:
    for place, row in enumerate(rows):
        one, spread = row.difference, np.linspace(-0.22, 0.22, max(len(row.pairs), 2))[: len(row.pairs)]
        axes.scatter(row.pairs, place + spread, s=7, color=row.colour, alpha=0.4, linewidth=0)
        if one.has_interval:
            axes.plot([one.low, one.high], [place, place], color=row.colour, linewidth=2.2)
        axes.plot([one.value], [place], color=row.colour, marker=_MARKERS[row.colour], markersize=6)
    low, high = axes.get_xlim()
    low, high = min(low, 0.0), max(high, 0.0)
    axes.axvspan(*((low, 0.0) if claim.sign < 0 else (0.0, high)), color=_CLAIMED, alpha=0.07, linewidth=0)
    axes.set_xlim(low, high)
    axes.axvline(0.0, color="#333", linewidth=1)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [plain(row.name, 30) for row in rows])
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
