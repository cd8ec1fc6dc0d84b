"""The page of ``peer-rl compare``: first whether PEER helped, then the numbers that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from peer_rl.plugin.diagnostics import gradient_verdict
from peer_rl.report import page, sections
from peer_rl.report.charts import curve_chart, group_styles, pair_chart
from peer_rl.report.curves import bootstrap_band, log_curves
from peer_rl.report.power import pairs_to_decide
from peer_rl.report.results import DIAGNOSTICS, last_diagnostic, runs_csv
from peer_rl.report.runs import Group, RunRecord, group_runs, seed_list
from peer_rl.report.scores import FEWEST_PAIRS, SCORE, Estimate, finite, paired_difference, summarise
from peer_rl.report.tables import Table, csv_text, linked, markdown, number, with_interval
from peer_rl.version import __version__

_FIRST = ("cosine", "drd", "feature_norm", "effective_rank", "dormant_fraction", "gradient_ratio")
_MEANINGS = {
    "cosine": "near 1: the features of a state and of the next one point the same way, which PEER counters",
    "drd": "above 0: the paper's property does not hold; it depends on the scale of features and last layer",
    "feature_norm": "grows without end when values diverge",
    "effective_rank": "directions that the features use; a fall during training is a collapse",
    "dormant_fraction": "hidden units that are always about 0",
    "gradient_ratio": "below 0.01 beta hardly matters; near 1 it competes with learning",
}


@dataclass(frozen=True)
class Effect:
    """What a variant does to the score, paired by seed with the stock agent."""

    group: Group
    scores: dict[int, float]
    reference: dict[int, float]
    """Of the stock agent."""

    @property
    def pairs(self) -> list[int]:
        """Seeds that both have."""
        return sorted(self.scores.keys() & self.reference.keys())

    @property
    def differences(self) -> list[float]:
        """Variant minus stock agent, seed by seed."""
        return [self.scores[seed] - self.reference[seed] for seed in self.pairs]

    @property
    def estimate(self) -> Estimate | None:
        """Mean difference with its interval and p-value."""
        return paired_difference(self.scores, self.reference)

    @property
    def needed(self) -> int | None:
        """Pairs that would decide a difference of the size seen."""
        return pairs_to_decide(self.differences) if self.pairs else None

    @property
    def identical(self) -> bool:
        """Whether the variant did exactly what the stock agent did, as when beta is not passed on."""
        return bool(self.pairs) and not any(self.differences)


def is_stock(group: Group) -> bool:
    """Whether this is the agent without a regularizer and without a control."""
    return group.config.beta == 0 and not group.config.settings.control


def effects(groups: Sequence[Group]) -> list[Effect]:
    """One for each variant but the stock agent; empty pairs where that is missing."""
    scores = {summary.group.key: dict(summary.values) for summary in summarise(groups, SCORE)}
    stock = next((scores[group.key] for group in groups if is_stock(group)), {})
    return [Effect(group, scores[group.key], stock) for group in groups if not is_stock(group)]


def sentence(effect: Effect) -> str:
    """The answer for one variant."""
    name, estimate = effect.group.label, effect.estimate
    if estimate is None:
        return (
            f"{name}: no seed has finished both with it and with the stock agent, so there is nothing to compare yet."
        )
    count = estimate.count
    if effect.identical:
        return (
            f"With {_pairs(count)}, {name} gives exactly the returns of the stock agent: "
            "check that the function passes beta on to its agent."
        )
    if not estimate.has_interval:
        change = number(estimate.value, 2, sign=True)
        return f"With one pair, {name} changes the return by {change}: one pair decides nothing."
    changed = f"With {_pairs(count)}, {name} changes the return by {with_interval(estimate, 2, sign=True)}"
    if estimate.decided():
        better = "higher" if estimate.value > 0 else "lower"
        return f"{changed} (sign-flip test p = {estimate.p:.2g}): the return is {better}; that is decided at 5 %."
    return f"{changed} (sign-flip test p = {estimate.p:.2g}): that is not decided. {_forecast(effect)}"


def _pairs(count: int) -> str:
    return "one pair" if count == 1 else f"{count} pairs"


def _forecast(effect: Effect) -> str:
    few = f"Fewer than {FEWEST_PAIRS} pairs cannot decide anything. " if len(effect.pairs) < FEWEST_PAIRS else ""
    if effect.needed is None:
        return f"{few}A difference of this size would take more than 1,000 pairs to decide."
    return f"{few}About {effect.needed} pairs would decide a difference of this size, if it is real."


def verdicts(groups: Sequence[Group]) -> list[str]:
    """The answers, one sentence or two for each variant."""
    if not any(is_stock(group) for group in groups):
        return ["There is no run of the stock agent: add 0 to the betas, so that there is something to compare with."]
    found = [sentence(effect) for effect in effects(groups)]
    return found or ["There is only the stock agent: add a beta above 0."]


def score_rule(groups: Sequence[Group]) -> str:
    """What the score is."""
    episodes = sorted({group.config.protocol.final_episodes for group in groups} - {0})
    if episodes:
        return f"mean return of the final policy over {' or '.join(map(str, episodes))} episodes"
    return "mean of the last ten returns that the function logged"


def effect_table(groups: Sequence[Group]) -> Table:
    """One row for each variant."""
    found = {effect.group.key: effect for effect in effects(groups)}
    rows = []
    for summary in summarise(groups, SCORE):
        group, effect = summary.group, found.get(summary.group.key)
        estimate = effect.estimate if effect else None
        spread = f" ± {number(summary.std, 2)}" if len(summary.values) > 1 else ""
        needed = (str(effect.needed) if effect.needed else "over 1,000") if effect and estimate else "-"
        rows.append(
            [
                linked(group),
                f"{len(summary.values)} of {len(group.records)}",
                number(summary.mean, 2) + spread,
                with_interval(estimate, 2, sign=True),
                "-" if estimate is None or not np.isfinite(estimate.p) else f"{estimate.p:.2g}",
                "-" if estimate is None else str(estimate.count),
                needed,
            ]
        )
    caption = (
        f"Score: {score_rule(groups)}; ± standard deviation over seeds. Difference: to the stock agent, paired by "
        "seed, with a 95 % BCa bootstrap interval. p: two-sided sign-flip test. Pairs to decide: for a difference of "
        "the size seen, with 80 % probability."
    )
    return Table(caption, ["variant", "runs", "score", "difference [95 %]", "p", "pairs", "pairs to decide"], rows)


def representation_table(groups: Sequence[Group]) -> Table | None:
    """The last diagnosis of every variant, mean and standard deviation over seeds."""
    rows = []
    for name in (*_FIRST, *(name for name in DIAGNOSTICS if name not in _FIRST)):
        cells = []
        for summary in summarise(groups, last_diagnostic(name)):
            digits = 3 if abs(summary.mean) < 10 else 1
            spread = f" ± {number(summary.std, digits)}" if len(summary.values) > 1 else ""
            cells.append(f"{number(summary.mean, digits)}{spread}" if summary.values else "-")
        if any(cell != "-" for cell in cells):
            rows.append([DIAGNOSTICS[name], *cells, _MEANINGS.get(name, "")])
    if not rows:
        return None
    header = ["at the end of training", *(group.label for group in groups), "how to read it"]
    return Table("The critic's representation: mean ± standard deviation over seeds.", header, rows)


def gradient_verdicts(groups: Sequence[Group]) -> list[str]:
    """Whether each beta matters, by the median of the gradient ratios measured during training."""
    lines = []
    for group in groups:
        logged = (finite(record, "diagnostics", "gradient_ratio") for record in group.finished)
        values = np.concatenate([np.zeros(0), *logged])
        if group.config.beta and values.size:
            lines.append(f"{gradient_verdict(float(np.median(values)), group.label)}.")
    return lines


def write_comparison(records: Sequence[RunRecord], out: Path, *, title: str) -> Path:
    """Write the page, and its tables as CSV and Markdown, into ``out``; returns the page's path."""
    groups = group_runs(records)
    problems = [record for record in records if record.problem]
    found = effect_table(groups)
    seen = representation_table(groups)
    parts = [_answer_section(groups, found), *_missing_section(records), *_curve_sections(groups, seen)]
    parts.append(sections.runs_section(groups, out))
    finished = sum(record.usable for record in records)
    lead = f"{finished} of {len(records)} planned runs finished. Made by peer-rl {__version__}."
    tables = [("Whether it helps", found), *([("Representation", seen)] if seen else [])]
    texts = {
        "report.html": page.render(title, lead, parts, switch=True),
        "table.md": markdown(title, tables, problems),
        "table.csv": _effects_csv(groups),
        "runs.csv": runs_csv(records, []),
    }
    page.write_files(out, texts)
    return out / "report.html"


def _answer_section(groups: Sequence[Group], table: Table) -> page.Section:
    stock = next((group.label for group in groups if is_stock(group)), "stock agent")
    charts = [
        pair_chart(
            f"Score by seed: {effect.group.label}",
            (stock, effect.group.label),
            {seed: (effect.scores[seed], effect.reference[seed]) for seed in effect.pairs},
        )
        for effect in effects(groups)
        if effect.pairs
    ]
    answer = verdicts(groups)
    texts = [page.Text(line, "answer" if index == 0 else "") for index, line in enumerate(answer)]
    several = len([group for group in groups if not is_stock(group)]) > 1
    note = (
        "Each answer stands alone: of many comparisons without an effect, one in twenty looks decided."
        if several
        else ""
    )
    return page.section("The answer", *texts, table, page.Text(note, "soft") if note else None, charts)


def _missing_section(records: Sequence[RunRecord]) -> list[page.Section]:
    """The runs that no number comes from."""
    labels = {record.path: group.label for group in group_runs(records) for record in group.records}
    lines = [
        f"{labels.get(record.path, record.variant)}, seed {record.seed}: {record.state}"
        + (f", {record.problem}" if record.problem else "")
        for record in records
        if not record.usable
    ]
    return [page.section("Missing", page.Bullets(lines))] if lines else []


def _curve_sections(groups: Sequence[Group], seen: Table | None) -> list[page.Section]:
    styles = group_styles(groups)
    note = page.Text("Lines: mean over seeds; bands: 95 % bootstrap interval of the mean.", "soft")
    curves = partial(log_curves, groups, spread=bootstrap_band)
    returns = curves("eval", "mean")
    shown = [curve_chart("Return", returns, styles)] if returns else []
    diagnosed = {name: found for name in DIAGNOSTICS if (found := curves("diagnostics", name))}
    first = [curve_chart(DIAGNOSTICS[name], diagnosed[name], styles) for name in _FIRST if name in diagnosed]
    more = [curve_chart(DIAGNOSTICS[name], drawn, styles) for name, drawn in diagnosed.items() if name not in _FIRST]
    empty = page.Text(
        "No run logged its representation. A training function logs it with log(step=step, **diagnose(phi, phi_next)"
        ".as_dict()).",
        "soft",
    )
    verdicts = page.Bullets(gradient_verdicts(groups))
    details = page.Details("More of the representation", [more]) if more else None
    return [
        *([page.section("Learning curves", shown, note)] if shown else []),
        page.section("The representation", seen or empty, verdicts if verdicts.lines else None, first, details),
    ]


def _effects_csv(groups: Sequence[Group]) -> str:
    header = ["variant", "beta", "regularizer", "control", "seeds", "mean", "std", "difference", "low", "high", "p"]
    found = {effect.group.key: effect for effect in effects(groups)}
    rows: list[list[str | float | int | None]] = []
    for summary in summarise(groups, SCORE):
        config, effect = summary.group.config, found.get(summary.group.key)
        estimate = effect.estimate if effect else None
        numbers: list[float | None] = [None] * 4
        if estimate:
            numbers = [estimate.value, estimate.low, estimate.high, estimate.p]
        about = [summary.group.key[2], config.beta, config.regularizer, config.settings.control]
        counts = [estimate.count if estimate else 0, effect.needed if effect else None]
        rows.append([*about, seed_list(sorted(summary.values)), summary.mean, summary.std, *numbers, *counts])
    return csv_text([*header, "pairs", "pairs_to_decide"], rows)
