"""The paper as data: its tables and figures, from the files in ``data/``. Imports no torch."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_FOLDER = files("peer_rl.paper") / "data"
SCORE_TABLES = ("table1", "table2", "table3", "mujoco", "redq", "model-based-dmc", "model-based-atari")
SUITE_TABLES = ("pybullet", "mujoco", "dmc", "atari")


@dataclass(frozen=True)
class PublishedSystem:
    """One algorithm of a table of scores."""

    name: str
    """As the table calls it, or as it should have."""
    agent: str = ""
    """Our agent for it; empty for what the paper only quotes, such as PlaNet, and for players."""
    beta: float = 0.0
    """PEER's weight; 0 for a baseline."""
    backbone: str = ""
    """The system that it adds PEER to, where the same table has it."""
    source: str = ""
    """Where the paper has the numbers from; empty for its own runs."""
    seeds: int = 0
    """Seeds behind the numbers, where not the table's own number."""
    budget_note: str = ""
    """The data behind the numbers, where it is not the table's."""
    budget: int = 0
    """The same in the table's counter; 0 for the table's own."""
    from_state: tuple[float, ...] = ()
    """Scores of the same agent from state, in the order of the table's tasks, where the row is from pixels."""
    reference: bool = False
    """A yardstick that the table does not compare with: State SAC, a human player, random play."""
    derived: tuple[str, ...] = ()
    """The systems whose best it is, game by game."""
    same_as: str = ""
    """The name of the same runs in another table."""
    printed: str = ""
    """The table's own spelling, where it is a misprint."""

    @property
    def quoted(self) -> bool:
        """Whether the numbers are from another paper."""
        return bool(self.source)


@dataclass(frozen=True)
class Score:
    """One cell of a table of scores."""

    budget: int
    """In the table's counter."""
    task: str
    system: str
    mean: float
    deviation: float | None
    best: bool
    """Whether the paper marks it as the best of its task."""


@dataclass(frozen=True)
class WinCount:
    """A sentence of the paper that counts tasks: on how many the best of ``left`` is above all of ``right``."""

    text: str
    where: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    printed: int
    of: int
    budget: int | None = None
    """Only this budget's tasks; None for all."""
    ties: bool = False
    """Whether being equal counts."""
    note: str = ""
    """What the table itself says, where the sentence is wrong."""


@dataclass(frozen=True)
class ScoreTable:
    """A table of scores, with what it is made of."""

    name: str
    label: str
    number: str
    experiment: str
    caption: str
    score: str
    """What one number is."""
    counter: str
    """What the budgets count: agent steps, or frames, which are environment steps."""
    steps: int
    seeds: int
    beta: float
    notes: tuple[str, ...]
    """Where the paper contradicts itself or its code."""
    tasks: dict[str, str]
    """Our task for each of the table's, with the table's spelling."""
    systems: tuple[PublishedSystem, ...]
    claims: tuple[WinCount, ...]
    scores: tuple[Score, ...]

    def system(self, name: str) -> PublishedSystem:
        """The row or column called ``name``."""
        return next(system for system in self.systems if system.name == name)

    @property
    def budgets(self) -> list[int]:
        """The largest first."""
        return sorted({score.budget for score in self.scores}, reverse=True)

    def find(self, task: str, system: str, budget: int) -> Score | None:
        """The cell of a task, a system and a budget."""
        wanted = (task, system, budget)
        return next((score for score in self.scores if (score.task, score.system, score.budget) == wanted), None)

    def wins(self, claim: WinCount) -> int:
        """The claim's count by the table's own numbers."""
        count = 0
        for budget in self.budgets if claim.budget is None else [claim.budget]:
            for task in self.tasks:
                here = {s.system: s.mean for s in self.scores if (s.task, s.budget) == (task, budget)}
                left = [here[name] for name in claim.left if name in here]
                right = [here[name] for name in claim.right if name in here]
                if left and right:
                    count += max(left) > max(right) or (claim.ties and max(left) == max(right))
        return count


@dataclass(frozen=True)
class SuiteRow:
    """A task's spaces."""

    task: str
    observation: tuple[int, ...]
    actions: int


@dataclass(frozen=True)
class SuiteTable:
    """The table of a suite's tasks."""

    name: str
    label: str
    number: str
    caption: str
    notes: tuple[str, ...]
    rows: tuple[SuiteRow, ...]


@dataclass(frozen=True)
class PublishedFigure:
    """A figure. The images are not in the paper's source: this is what the text says about them."""

    label: str
    number: str
    caption: str
    experiment: str = ""
    """Ours for it; empty for drawings."""
    agents: tuple[str, ...] = ()
    tasks: int = 0
    seeds: int = 0
    beta: float = 0.0
    betas: int = 0
    notes: tuple[str, ...] = ()


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((_FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()))


def _fixed(row: dict[str, Any]) -> dict[str, Any]:
    """Lists as tuples, so that what is loaded once cannot be changed; an unknown key is a TypeError of the class."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


@cache
def score_table(name: str) -> ScoreTable:
    """One of ``SCORE_TABLES``."""
    about = _toml(name)
    about.pop("kind")
    scores = [
        Score(
            int(row["budget"]),
            row["task"],
            row["system"],
            float(row["mean"]),
            float(row["deviation"]) if row["deviation"] else None,
            row["best"] == "best",
        )
        for row in _rows(name)
    ]
    systems = [PublishedSystem(**_fixed(row)) for row in about.pop("systems")]
    claims = [WinCount(**_fixed(row)) for row in about.pop("claims")]
    return ScoreTable(name=name, systems=tuple(systems), claims=tuple(claims), scores=tuple(scores), **_fixed(about))


@cache
def suite_table(name: str) -> SuiteTable:
    """One of ``SUITE_TABLES``."""
    about = _toml(f"suite-{name}")
    about.pop("kind")
    rows = [
        SuiteRow(row["task"], tuple(map(int, row["observation"].split("x"))), int(row["actions"]))
        for row in _rows(f"suite-{name}")
    ]
    return SuiteTable(name=name, rows=tuple(rows), **_fixed(about))


@cache
def published_figures() -> tuple[PublishedFigure, ...]:
    """All figures, in the paper's order."""
    return tuple(PublishedFigure(**_fixed(row)) for row in _toml("figures")["figures"])


def tables_of(experiment: str) -> list[ScoreTable]:
    """The tables of scores that an experiment reproduces."""
    return [table for table in map(score_table, SCORE_TABLES) if table.experiment == experiment]


def figures_of(experiment: str) -> list[PublishedFigure]:
    """The figures that an experiment reproduces."""
    return [figure for figure in published_figures() if figure.experiment == experiment]


def notes_of(experiment: str) -> list[str]:
    """Where the paper contradicts itself or its code, in everything that the experiment reproduces."""
    notes: list[str] = []
    sources: Sequence[ScoreTable | PublishedFigure] = [*tables_of(experiment), *figures_of(experiment)]
    for source in sources:
        notes += source.notes
    for table in tables_of(experiment):
        notes += [f'"{c.text}: {c.printed} of {c.of}" ({c.where}): {c.note}.' for c in table.claims if c.note]
    return list(dict.fromkeys(notes))
