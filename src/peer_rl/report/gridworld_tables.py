"""The grid world's tables: what holds of the paper's claims, all numbers, and what PEER's effect comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peer_rl.envs.gridworld import SHORTEST
from peer_rl.report.findings import HELPS, HURTS, UNDECIDED, Finding, effect
from peer_rl.report.gridworld import EPISODES, MEASURES, NORM, STEPS, Study, Verdict, plain_group
from peer_rl.report.runs import Group, describe
from peer_rl.report.scores import Estimate, Summary, paired_difference
from peer_rl.report.tables import Table, linked, number, pairs, with_interval, with_spread

CONTROL_LEVEL = 0.01
"""Of a control's comparison with plain DQN: several are made (results/gridworld.toml)."""
TURNING, SHRINKING = "cosine-peer", "feature-norm"


def p_value(estimate: Estimate | None) -> str:
    """Of the sign-flip test, with two digits that count."""
    return "-" if estimate is None or estimate.p != estimate.p else f"{estimate.p:.2g}"


def findings(study: Study) -> list[Finding]:
    """Each of the paper's claims for each variant, for the summary of a report."""
    return [
        Finding(
            f"Figure 3 ({one.claim.panel}), {study.encoding} states, profile {study.profile}. {one.claim.text}",
            linked(one.group),
            with_interval(one.difference, one.claim.measure.digits, sign=True),
            one.words,
        )
        for one in study.verdicts
    ]


def verdict_table(study: Study) -> Table:
    """What the paper says about figure 3, and what our runs say."""
    rows = [
        [
            f"({one.claim.panel}) {one.claim.text}",
            linked(one.group),
            one.words,
            one.claim.measure.title,
            with_interval(one.difference, one.claim.measure.digits, sign=True),
            p_value(one.difference),
            pairs(one.difference),
        ]
        for one in study.verdicts
    ]
    header = ["the paper's claim", "variant", "our runs", "measured by", "difference to DQN [95 %]", "p", "pairs"]
    about = "Differences are paired by seed, with 95 % BCa intervals; p: exact sign-flip test."
    return Table(f"{describe(study.groups)} {about}", header, rows)


def study_tables(study: Study) -> list[Table]:
    """The numbers of figure 3, and their differences to DQN."""
    numbers = []
    for index, group in enumerate(study.groups):
        texts = [with_spread(summaries[index]) for summaries in study.summaries]
        counters = [number(group.mean_count(name), 0) for name in ("step", "frame")]
        numbers.append([linked(group), f"{len(group.finished)} of {len(group.records)}", *texts, *counters])
    about = describe(study.groups)
    exact = f"Exact answer for the Q difference: {study.exact:g}; shortest path: {SHORTEST} steps."
    header = ["variant", "seeds", *(measure.title for measure in MEASURES), "agent steps", "frames"]
    tables = [Table(f"{about} Mean ± standard deviation over seeds. {exact}", header, numbers)]
    compared = [index for index, summary in enumerate(study.summaries[0]) if summary.difference]
    if compared:
        rows = []
        for measure, summaries in zip(MEASURES, study.summaries, strict=True):
            found = [summaries[index].difference for index in compared]
            texts = [f"{with_interval(one, measure.digits, sign=True)} (p {p_value(one)})" for one in found]
            rows.append([measure.title, *texts])
        note = "Differences to DQN, paired by seed, with 95 % BCa intervals and (p-value of the exact sign-flip test)."
        tables.append(Table(f"{about} {note}", ["", *(linked(study.groups[index]) for index in compared)], rows))
    return tables


@dataclass(frozen=True)
class Control:
    """A regularizer, or something else that one does to a critic, by its steps per episode."""

    group: Group
    steps: Summary
    to_plain: Estimate
    to_peer: Estimate | None
    """The difference to PEER with the same beta, for another regularizer."""

    @property
    def verdict(self) -> str:
        """helps, hurts or not decided, compared with plain DQN."""
        return effect(self.to_plain, CONTROL_LEVEL, sign=-1)


def controls(study: Study) -> list[Control]:
    """PEER and every control of a study; empty if there is no control."""
    by_measure = {summaries[0].measure.name: summaries for summaries in study.summaries}
    steps = by_measure[STEPS.name]
    peer = {one.group.config.beta: one for one in steps if one.group.config.regularizer == "peer"}
    found = []
    for one in steps:
        config = one.group.config
        same = peer.get(config.beta) if config.beta and config.regularizer != "peer" else None
        to_peer = paired_difference(one.values, same.values) if same else None
        if one.difference is not None:
            found.append(Control(one.group, one, one.difference, to_peer))
    return found if any(one.group.label not in study.paper for one in found) else []


def mechanism(study: Study) -> dict[float, str]:
    """By beta: what PEER's effect on the steps per episode comes from, its turning of phi or its shrinking."""
    found = controls(study)
    others = bool(_others_that_help(study))
    words = {}
    for beta in sorted({one.group.config.beta for one in found if isinstance(one.group.config.beta, float)} - {0.0}):
        by_name = {one.group.config.regularizer: one for one in found if one.group.config.beta == beta}
        if {"peer", TURNING, SHRINKING} <= set(by_name):
            said = _mechanism(by_name["peer"], by_name[TURNING], by_name[SHRINKING])
            words[beta] = said + ("; not PEER's alone" if others and by_name["peer"].verdict == HELPS else "")
    return words


def _others_that_help(study: Study) -> list[str]:
    """Controls without a regularizer that need fewer steps than plain DQN."""
    found = [one for one in controls(study) if one.group.config.beta == 0 and one.verdict == HELPS]
    return [one.group.label.rpartition(", ")[2] for one in found]


def _mechanism(peer: Control, turning: Control, shrinking: Control) -> str:
    """The rule that results/gridworld.toml fixed beforehand."""
    if peer.verdict != HELPS:
        return f"PEER's own effect: {peer.verdict}"
    helps = turning.verdict == HELPS, shrinking.verdict == HELPS
    if helps == (True, True):
        return "both"
    if helps == (False, False):
        return "neither alone"
    between = paired_difference(turning.steps.values, shrinking.steps.values)
    better = effect(between, CONTROL_LEVEL, sign=-1)
    if helps == (True, False):
        return "the turning" if better == HELPS else UNDECIDED
    return "the shrinking" if better == HURTS else UNDECIDED


def mechanism_table(study: Study) -> Table | None:
    """PEER, its two halves, and other controls; None without a control."""
    found = controls(study)
    if not found:
        return None
    by_measure = {summaries[0].measure.name: summaries for summaries in study.summaries}
    plain = plain_group(study.groups)

    def numbers(group: Group) -> list[str]:
        keys = [one.key for one in study.groups]
        return [with_spread(by_measure[one.name][keys.index(group.key)]) for one in (STEPS, EPISODES, NORM)]

    rows = [[linked(plain), *numbers(plain), "-", "-", "-", "-"]] if plain else []
    rows += [
        [
            linked(one.group),
            *numbers(one.group),
            with_interval(one.to_plain, STEPS.digits, sign=True),
            p_value(one.to_plain),
            one.verdict,
            f"{with_interval(one.to_peer, STEPS.digits, sign=True)} (p {p_value(one.to_peer)})" if one.to_peer else "-",
        ]
        for one in found
    ]
    header = [
        "variant", STEPS.title, EPISODES.title, NORM.title, "steps: difference to DQN [95 %]", "p",
        f"at level {CONTROL_LEVEL:g}", "steps: difference to PEER of the same beta [95 %]",
    ]  # fmt: skip
    said = "; ".join(f"beta {beta:g}: {words}" for beta, words in mechanism(study).items())
    note = "What PEER's effect comes from, by the rule of results/gridworld.toml: " + (said or UNDECIDED)
    about = f"{describe(study.groups)} Mean ± standard deviation over seeds; differences paired by seed. {note}."
    return Table(about, header, rows)


def overview_table(found: Sequence[Study], seeds: int) -> Table:
    """What holds in each encoding at each beta: every claim by the score that decides it, and the mechanism.

    A verdict needs ``seeds`` pairs; before that the cell counts them.
    """
    rows = []
    for study in found:
        decisive = [one for one in study.verdicts if one.claim.decides]
        for beta in sorted({float(one.group.config.beta) for one in decisive}):
            cells = [_answer(one, seeds) for one in decisive if one.group.config.beta == beta]
            rows.append([study.encoding, f"{beta:g}", *cells, _cause(study, beta, seeds)])
    return Table(
        "By the rules of results/gridworld.toml.", ["states", "beta", *_QUESTIONS, "what (d) comes from"], rows
    )


_QUESTIONS = ("(b) lower cosine?", "(c) value difference closer to the exact one?", "(d) fewer steps per episode?")


def _answer(one: Verdict, seeds: int) -> str:
    """Yes, no or not decided, with the numbers; the first two say that the plan's test decided."""
    difference, sign = one.difference, one.claim.sign
    if difference is None:
        return "no pair yet"
    words = "not decided"
    if difference.decided():
        words = "yes" if difference.value * sign > 0 else "no, the opposite"
    if difference.count < seeds:
        words = f"open, {difference.count} of {seeds} pairs"
    return f"{words}: {with_interval(difference, one.claim.measure.digits, sign=True)}"


def _cause(study: Study, beta: float, seeds: int) -> str:
    """The mechanism at a beta, once PEER and both of its halves have all of their pairs."""
    names = {"peer", TURNING, SHRINKING}
    counts = {
        one.group.config.regularizer: one.to_plain.count for one in controls(study) if one.group.config.beta == beta
    }
    if not names <= set(counts):
        return "the halves were not run"
    least = min(counts[name] for name in names)
    if least < seeds:
        return f"open, {least} of {seeds} pairs"
    said, _, others = mechanism(study)[beta].partition("; ")
    return _CAUSES.get(said, said) + (f"; also helps: {', '.join(_others_that_help(study))}" if others else "")


_CAUSES = {
    "the turning": "rotation: the half that only rotates helps, the half that only shrinks does not",
    "the shrinking": "shrinkage: the half that only shrinks helps, the half that only rotates does not",
    "both": "either: each half helps alone",
    "neither alone": "both together: neither half helps alone",
    f"PEER's own effect: {UNDECIDED}": f"open: PEER's own effect is not decided at level {CONTROL_LEVEL:g}",
}
"""The plan's words, for readers who do not know it."""


def heading(study: Study) -> str:
    """Of the section on a study, and of its tables."""
    return f"Grid world (figure 3 of the paper), {study.encoding} states, profile {study.profile}"


def all_tables(study: Study) -> Sequence[tuple[str, Table]]:
    """Every table of a study with its heading."""
    about, mechanisms = heading(study), mechanism_table(study)
    tables = [(f"{about}: the paper's claims", verdict_table(study))]
    tables += zip((f"{about}: numbers", f"{about}: differences"), study_tables(study), strict=False)
    return [*tables, *([(f"{about}: mechanism", mechanisms)] if mechanisms else [])]
