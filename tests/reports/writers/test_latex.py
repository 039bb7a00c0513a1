from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.writers.latex import latex_table, latex_text
from support.run_folders import HOSTILE


@pytest.mark.parametrize(
    ("said", "written"),
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
def test_special_characters_become_letters(said: str, written: str) -> None:
    assert latex_text(said) == written


@given(st.text())
def test_no_text_can_open_a_group_or_a_command(said: str) -> None:
    written = latex_text(said)
    for command in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}"):
        written = written.replace(command, "")
    written = re.sub(r"\\text(less|greater|bar|quotedbl)\{\}", "", written)
    assert not re.search(r"(?<!\\)[&%$#_{}~^]", written)


def test_a_table_has_booktabs_bold_marks_and_notes() -> None:
    table = Table(
        "Results & more",
        (Column("model"), Column("nDCG@10", numeric=True, direction="higher")),
        ((Cell("a_b", mark="a"), Cell("0.3000", 0.3, best=True, mark="b")),
         (Cell("c"), Cell("-0.1000", -0.1))),
        ("50% of them",),
    )  # fmt: skip
    written = latex_table(table)
    assert r"\caption{Results \& more}" in written
    assert r"\begin{tabular}{lr}" in written
    assert r"model & nDCG@10 $\uparrow$ \\" in written
    assert r"a\_b\textsuperscript{a} & \textbf{0.3000}\textsuperscript{b} \\" in written
    assert r"c & $-0.1000$ \\" in written
    assert r"50\% of them" in written
    assert [written.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1] * 3


def test_hostile_labels_leave_the_table_whole() -> None:
    rows = tuple((Cell(label), Cell("1", 1.0)) for label in HOSTILE)
    written = latex_table(Table("t", (Column("model"), Column("x", numeric=True)), rows))
    lines = written.partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
    assert len(lines) == len(HOSTILE)
    assert all(len(re.findall(r"(?<!\\)&", line)) == 1 for line in lines)
