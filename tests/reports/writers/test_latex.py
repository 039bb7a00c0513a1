from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.environments import escape_latex, render_latex
from recbias.reports.wording import Cell, Column, Table
from support.run_folders import HOSTILE


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("50%", r"50\%"),
        ("a_b & c", r"a\_b \& c"),
        ("$x^2$", r"\$x\textasciicircum{}2\$"),
        (r"\end{document}", r"\textbackslash{}end\{document\}"),
        ("~#", r"\textasciitilde{}\#"),
        ("<a|b>", r"\textless{}a\textbar{}b\textgreater{}"),
        ("two\nlines", "two lines"),
        ("🦊", "🦊"),
    ],
)
def test_special_characters_are_escaped(text: str, escaped: str) -> None:
    assert escape_latex(text) == escaped


@given(st.text())
def test_no_text_can_open_a_group_or_a_command(text: str) -> None:
    latex = escape_latex(text)
    for command in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}"):
        latex = latex.replace(command, "")
    latex = re.sub(r"\\text(less|greater|bar|quotedbl)\{\}", "", latex)
    assert not re.search(r"(?<!\\)[&%$#_{}~^]", latex)


def test_a_table_has_rules_bold_values_marks_and_notes() -> None:
    table = Table(
        "Results & more",
        (Column("model"), Column("nDCG@10", numeric=True, direction="higher")),
        ((Cell("a_b", mark="a"), Cell("0.3000", 0.3, best=True, mark="b")),
         (Cell("c"), Cell("-0.1000", -0.1))),
        ("50% of them",),
    )  # fmt: skip
    latex = render_latex(table)
    assert r"\caption{Results \& more}" in latex
    assert r"\begin{tabular}{lr}" in latex
    assert r"model & nDCG@10 $\uparrow$ \\" in latex
    assert r"a\_b\textsuperscript{a} & \textbf{0.3000}\textsuperscript{b} \\" in latex
    assert r"c & $-0.1000$ \\" in latex
    assert r"50\% of them" in latex
    assert [latex.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1] * 3


def test_hostile_labels_do_not_break_the_table() -> None:
    rows = tuple((Cell(label), Cell("1", 1.0)) for label in HOSTILE)
    latex = render_latex(Table("t", (Column("model"), Column("x", numeric=True)), rows))
    lines = latex.partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
    assert len(lines) == len(HOSTILE)
    assert all(len(re.findall(r"(?<!\\)&", line)) == 1 for line in lines)
