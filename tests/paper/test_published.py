"""The paper as data: compared with our own tables always, with the paper's LaTeX if it is next to the repository."""

import re
from pathlib import Path

import pytest
from printed_settings import SETTING_TABLES, setting_table

from peer_rl.paper.published import (
    SCORE_TABLES,
    SUITE_TABLES,
    notes_of,
    published_figures,
    score_table,
    suite_table,
)
from peer_rl.settings import AGENTS, as_dict, configure
from peer_rl.settings.atari_games import GAMES
from peer_rl.settings.tasks import TASKS

LATEX = Path(__file__).parents[2].parent / "shared" / "paper" / "peer.tex"
NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?")
COMMANDS = re.compile(r"\\(?:(?:text(?:bf|it|tt)?|mathcal|footnotesize|colorbox|tiny|left|right)\b|[!;,])")


# -- the data alone ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCORE_TABLES)
def test_every_cell_of_a_table_is_there_once(name):
    table = score_table(name)
    cells = [(score.budget, score.task, score.system) for score in table.scores]
    assert len(set(cells)) == len(cells)
    assert {score.task for score in table.scores} == set(table.tasks) <= set(TASKS)
    assert {score.system for score in table.scores} == {system.name for system in table.systems}
    per_row = {(budget, task): sum(key[:2] == (budget, task) for key in cells) for budget, task, _ in cells}
    assert name == "model-based-dmc" or set(per_row.values()) == {len(table.systems)}


@pytest.mark.parametrize("name", SCORE_TABLES)
def test_the_papers_counts_follow_from_its_numbers_or_a_note_says_so(name):
    table = score_table(name)
    assert {claim.text: table.wins(claim) == claim.printed for claim in table.claims} == {
        claim.text: not claim.note for claim in table.claims
    }
    for claim in table.claims:
        assert not claim.note or str(table.wins(claim)) in claim.note


def test_dreamer_v2_had_2_5_times_the_data_of_peer_and_not_ten() -> None:
    table = score_table("model-based-atari")
    dreamer = table.system("Dreamer-V2")
    assert (dreamer.budget / table.steps, dreamer.seeds) == (2.5, 8)
    (note,) = [note for note in notes_of("table3") if "250,000 agent steps" in note]
    assert "2.5 times" in note
    assert sum("Dreamer-V2" in note for note in notes_of("table3")) >= 3  # the budget, the seeds, sticky actions


def test_peer_on_td_mpc_is_closer_to_td_mpc_from_state_than_to_the_row_from_pixels() -> None:
    table = score_table("model-based-dmc")
    means = {name: [table.find(task, name, 100_000).mean for task in table.tasks] for name in ("PEER+TDMPC", "TDMPC")}
    means["state"] = table.system("TDMPC").from_state
    state, pixels = (
        sum(abs(ours - theirs) for ours, theirs in zip(means["PEER+TDMPC"], means[name], strict=True)) / 6
        for name in ("state", "TDMPC")
    )
    assert (round(state), round(pixels)) == (67, 196)
    (note,) = [note for note in notes_of("table2") if "from state" in note]
    assert f"{round(state)} points, from pixels {round(pixels)}" in note
    assert any("510,000 frames" in note for note in notes_of("table2"))


@pytest.mark.parametrize("name", SCORE_TABLES)
def test_systems_are_ours_or_quoted(name):
    table = score_table(name)
    for system in table.systems:
        assert system.agent in {"", *AGENTS}
        assert system.agent or system.quoted or system.derived, f"{system.name} is nobody's"
        assert system.beta in (0.0, table.beta)
        assert not system.backbone or table.system(system.backbone).agent == system.agent
    only_quoted = {system.name for system in table.systems if not system.agent and not system.derived}
    players = {"MuZero", "Human", "Random"}
    assert only_quoted <= players


@pytest.mark.parametrize("name", SCORE_TABLES)
def test_the_marked_ones_are_the_best(name):
    table = score_table(name)
    for budget in table.budgets:
        for task in table.tasks:
            here = [score for score in table.scores if (score.task, score.budget) == (task, budget)]
            compared = [score for score in here if not table.system(score.system).reference]
            best = max(score.mean for score in compared)
            assert [score.mean for score in here if score.best] == [best], (task, budget)


def test_players_scores_are_the_games_own():
    table = score_table("table3")
    for game in GAMES.values():
        task = f"atari/{game.name}"
        assert table.find(task, "Human", 100_000).mean == game.human
        assert table.find(task, "Random", 100_000).mean == game.random


def test_the_better_of_two_agents_is_the_better_of_table_3():
    ours, theirs = score_table("model-based-atari"), score_table("table3")
    for task in ours.tasks:
        both = [theirs.find(task, name, 100_000).mean for name in ours.system("PEER").derived]
        assert ours.find(task, "PEER", 100_000).mean == max(both)


@pytest.mark.parametrize("name", SETTING_TABLES)
def test_our_settings_are_the_papers_or_say_why_not(name):
    table = setting_table(name)
    for row in table.settings:
        for agent in (row.agents or table.agents) if row.path else ():
            given = {"beta": row.value} if row.path == "beta" and agent == "metd3" else {}
            ours = as_dict(configure(agent, row.task or table.task, **given))[row.path]
            value = list(row.value) if isinstance(row.value, tuple) else row.value
            assert (ours == value) == (not row.differs), (agent, row.name, ours)


@pytest.mark.parametrize("name", SETTING_TABLES)
def test_a_rows_value_is_what_it_prints(name):
    for row in setting_table(name).settings:
        if not row.path or isinstance(row.value, bool):
            continue
        printed = numbers(row.printed)
        values = list(row.value) if isinstance(row.value, tuple) else [row.value]
        wanted = {"layers": [len(values)], "units": sorted({*values})}.get(row.part, values)
        found = [*printed, *row.printed.replace(":", " ").split()]  # a choice is printed as a word
        assert all(value in found for value in wanted), row


@pytest.mark.parametrize("name", SUITE_TABLES)
def test_our_tasks_have_the_papers_spaces(name):
    table = suite_table(name)
    assert [row.task for row in table.rows] == [task.name for task in TASKS.values() if task.suite == name]
    for row in table.rows:
        task = TASKS[row.task]
        if name == "atari":
            assert row.actions == task.actions
        elif name == "dmc":
            assert row.actions == task.dimensions[1]
        else:
            assert task.paper_dimensions == (row.observation[0], row.actions)


# -- against the LaTeX -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def latex():
    if not LATEX.exists():
        pytest.skip("the paper's LaTeX is not part of the repository and is not next to it")
    return LATEX.read_text()


def environments(latex: str, kind: str) -> dict[str, str]:
    """Every table or figure by its label, outer labels only."""
    found = {}
    for match in re.finditer(rf"\\begin\{{({kind}\*?)\}}(.*?)\\end\{{\1\}}", latex, re.DOTALL):
        labels = [label for label in re.findall(r"\\label\{(.*?)\}", match[2]) if not label.startswith("fig: sub")]
        assert len(labels) == 1
        found[labels[0]] = match[2]
    return found


def rows_of(table: str) -> list[list[str]]:
    """The cells of a LaTeX table, its header first."""
    body = re.search(r"\\begin\{tabular\}\{[^}]*\}(.*)\\end\{tabular\}", table, re.DOTALL)[1]
    body = re.sub(r"\\(?:toprule|midrule|bottomrule)", "", body)
    return [[cell.strip() for cell in row.split("&")] for row in re.split(r"\\\\", body) if row.strip()]


def plain(text: str) -> str:
    """A cell without LaTeX: 5 x 10^-4 is 5e-4, 5 x 5 is 5x5."""
    text = re.sub(r"\\cite\{.*?\}|\\label\{.*?\}", "", text).replace("$", "")
    text = re.sub(r"(?:([\d.]+)\s*\\times\s*)?10\s*\^\s*\{?(-?\d+)\}?", lambda m: f"{m[1] or 1}e{m[2]}", text)
    text = text.replace(r"\times", "x").replace(r"\_", "_").replace(r"\rightarrow", "to")
    return " ".join(re.sub(r"[{}]", "", COMMANDS.sub("", text)).split())


def numbers(text: str) -> list[float]:
    """108k is 108000; a number that touches a letter in front is part of a name."""
    text = re.sub(r"(\d)[kK]\b", r"\g<1>e3", text)
    return [float(found) for found in NUMBER.findall(text)]


def letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


def test_every_table_and_figure_is_there(latex):
    tables = [*map(score_table, SCORE_TABLES), *map(setting_table, SETTING_TABLES), *map(suite_table, SUITE_TABLES)]
    assert sorted(table.label for table in tables) == sorted(environments(latex, "table"))
    assert [figure.label for figure in published_figures()] == list(environments(latex, "figure"))


@pytest.mark.parametrize("name", SCORE_TABLES)
def test_every_score_is_the_papers(latex, name):
    table = score_table(name)
    printed = {}
    budget = table.budgets[0]
    header, *body = rows_of(environments(latex, "table")[table.label])
    columns = [re.sub(r" ?\+ ?", "+", plain(cell)) for cell in header[1:]]
    for row in body:
        if len(row) == 1:  # a line between two budgets
            budget = int(re.match(r"(\d+)K", row[0])[1]) * 1000
            continue
        first = re.sub(r" ?\+ ?", "+", plain(row[0]))
        for column, cell in zip(columns, row[1:], strict=True):
            found = numbers(plain(cell.replace("mine", "").replace("..", ".").replace(r"\pm", " ")))
            printed[budget, first, column] = (found[0], *found[1:], "colorbox" in cell)
    expected = {}
    for score in table.scores:
        system = table.system(score.system)
        names = [table.tasks[score.task], (system.printed or system.name).replace(" +", "+")]
        first, column = names if names[1] in columns else names[::-1]
        deviation = () if score.deviation is None else (score.deviation,)
        expected[score.budget, first, column] = (score.mean, *deviation, score.best)
    assert printed == expected


def test_the_only_misprinted_number_is_the_one_in_the_notes(latex):
    assert re.findall(r"\d+\.\.\d+", latex) == ["624..4"]
    assert any("624..4" in note for note in score_table("table3").notes)


@pytest.mark.parametrize("name", SETTING_TABLES)
def test_every_setting_is_the_papers(latex, name):
    table = setting_table(name)
    _, *body = rows_of(environments(latex, "table")[table.label])
    printed = [row[1] for row in body if len(row) == 2 and row[1]]
    assert len(printed) == len(table.settings)
    for row, cell in zip(table.settings, printed, strict=True):
        words = plain(cell)
        assert numbers(row.printed) == numbers(re.sub(r"(?<=\d) to ", " ", words)), (row.name, words)
        if not numbers(words):
            assert letters(row.printed) == letters(words), row.name


@pytest.mark.parametrize("name", SUITE_TABLES)
def test_every_space_is_the_papers(latex, name):
    table = suite_table(name)
    _, *body = rows_of(environments(latex, "table")[table.label])
    assert len(body) == len(table.rows)
    for row, (*names, observation, actions) in zip(table.rows, body, strict=True):
        spelled = re.sub(r"[^a-z0-9]", "", plain("".join(names)).lower())
        assert re.sub(r"[^a-z0-9]", "", row.task.split("/")[1]) == spelled
        assert (list(row.observation), [row.actions]) == (numbers(observation), numbers(actions))


def test_figures_say_what_their_captions_say(latex):
    words = {"five": 5, "ten": 10}
    for figure in published_figures():
        text = environments(latex, "figure")[figure.label]
        seeds = re.search(r"over (\w+) (?:random )?seeds", text)
        if seeds:
            assert figure.seeds == int(words.get(seeds[1], seeds[1])), figure.label
        games = re.search(r"(\d+) Atari games for selected (\d+)", text)
        if games:
            assert (figure.tasks, figure.betas) == (int(games[1]), int(games[2]))


def test_beta_is_the_same_everywhere(latex):
    assert r"fixed value of $\beta=5e-4$" in latex
    assert {score_table(name).beta for name in SCORE_TABLES} == {5e-4}
