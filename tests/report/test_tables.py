import csv
import re

import pytest

from peer_rl.report.page import part_html
from peer_rl.report.tables import Linked, Table, csv_text, escape_latex, latex, markdown, number


def test_numbers_for_people() -> None:
    assert number(1234.567, 1) == "1,234.6"
    assert number(-0.0001, 2, sign=True) == "+0.00"
    assert number(float("nan"), 2) == "-"


def test_cells_are_escaped_on_the_page_and_linked_text_is_a_link() -> None:
    table = Table("a <b>", ["<i>"], [[Linked("<u>", "#runs-1"), "&"]])
    shown = part_html(table)
    assert "a &lt;b&gt;" in shown
    assert '<a href="#runs-1">&lt;u&gt;</a>' in shown
    assert not re.search("<[biu]>", shown)


def test_cells_do_not_break_a_markdown_table() -> None:
    text = markdown("t", [("h", Table("c", ["x|y"], [["<b>\n| z"]]))], [])
    assert r"| x\|y |" in text
    assert r"| &lt;b&gt; \| z |" in text


NASTY = r"50% of_a & b #1 $x$ {y} ~z ^w \end{tabular} <i> | \"q\" [1ex] ünï ±"


def test_latex_gets_no_special_sign_unescaped() -> None:
    """What is left, without the commands that stand for signs, is letters that LaTeX sets as they are."""
    text = escape_latex(NASTY)
    assert text.isascii()
    commands = r"\\text(backslash|asciitilde|asciicircum|less|greater|bar)\{\}|\\[&%$#_{}]|\$\\pm\$|\{[\[\]]\}"
    assert not re.search(r"[\\&%$#_{}~^<>|\"\[\]]", re.sub(commands, "", text)), text
    assert r"50\% of\_a \& b \#1 \$x\$" in text
    assert "{[}U+00FC{]}n{[}U+00EF{]}" in text


def test_rows_of_latex_have_as_many_cells_as_the_header() -> None:
    text = latex([("Heading & all", Table("100 %", ["a", "b & c"], [["1 & 2", "[2]"], ["3", "4"]]))])
    assert r"\caption{Heading \& all. 100 \%}" in text
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert [len(re.findall(r"(?<!\\)&", row)) for row in rows] == [1, 1, 1]
    assert r"\begin{tabular}{ll}" in text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@A1", "\t=1", "=HYPERLINK(1)"])
def test_a_spreadsheet_runs_nothing(text) -> None:
    ((cell,),) = list(csv.reader(csv_text(["a"], [[text]]).splitlines()[1:]))
    assert cell == "'" + text.strip()


def test_numbers_in_csv_are_whole_and_missing_ones_empty() -> None:
    line = csv_text(["a"] * 6, [[-0.1, 1 / 3, 7, None, float("nan"), "plain, text"]]).splitlines()[1]
    assert line == '-0.1,0.3333333333333333,7,,,"plain, text"'
