from __future__ import annotations

import re
from pathlib import Path

import pytest

from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.run_tables import read_run
from recbias.reports.writers.content import Content
from recbias.reports.writers.markdown import (
    LONGEST,
    markdown_report,
    markdown_table,
    markdown_text,
)
from support.run_folders import HOSTILE, NINETEEN_MODELS, RunSpec, make_run
from support.search_rows import write_search_run


def report(folder: Path, world: RunSpec) -> str:
    return markdown_report(Content(read_run(make_run(folder, world))))


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("a|b", r"a\|b"),
        ("<script>", "&lt;script&gt;"),
        ("*x* _y_ `z`", r"\*x\* \_y\_ \`z\`"),
        ("[a](b)", r"\[a\](b)"),
        ("$x$", r"\$x\$"),
        ("two\nlines", "two lines"),
        ("AT&T", "AT&amp;T"),
    ],
)
def test_markdown_and_html_are_escaped(said: str, written: str) -> None:
    assert markdown_text(said) == written


def test_a_table_has_one_line_a_row_whatever_the_labels() -> None:
    rows = tuple((Cell(label), Cell("0.1", 0.1, best=True, mark="a")) for label in HOSTILE)
    columns = (Column("model"), Column("x", numeric=True))
    lines = markdown_table(Table("t", columns, rows)).splitlines()
    assert lines[1] == "| :-- | --: |"
    assert len(lines) == 2 + len(HOSTILE)
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in lines)
    assert lines[2].endswith("| **0.1**<sup>a</sup> |")


def test_failures_and_warnings_come_first(tmp_path: Path) -> None:
    failed = [{"stage": "fit X", "message": "<boom>"}]
    said = report(tmp_path, RunSpec(failures=failed, warnings=["w|w"]))
    assert said.index("## Failed") < said.index("## Warnings") < said.index("## Results")
    assert "&lt;boom&gt;" in said
    assert r"w\|w" in said


def test_it_has_every_part(tmp_path: Path) -> None:
    said = report(tmp_path, RunSpec())
    heads = re.findall(r"^## (.*)$", said, re.MULTILINE)
    assert heads == [
        *(
            "In short",
            "What was measured",
            "Results",
            "Figures",
            "Significance",
            "Definitions",
            "Models",
        ),
        "How it was made",
    ]
    assert "](figures/accuracy-popularity.svg)" in said
    assert "| Random | MostPop |" in said


def test_many_comparisons_are_counted_and_not_listed(tmp_path: Path) -> None:
    said = report(tmp_path, RunSpec(models=NINETEEN_MODELS, metrics=("HR",), lists=False))
    assert "of 171 significant" in said
    assert "significance.csv" in said
    assert len(said.splitlines()) < 250


def test_no_markup_of_a_label_survives(tmp_path: Path) -> None:
    said = report(tmp_path, RunSpec(models=HOSTILE))
    assert "<script" not in said
    assert "](http" not in said.replace(r"\](http", "")


def test_searches_have_a_section(tmp_path: Path) -> None:
    text = markdown_report(Content(write_search_run(tmp_path)))
    assert "## Search for settings" in text
    assert "### SLIM" in text
    assert "![Which settings mattered: SLIM](figures/importance-slim.svg)" in text
    assert "| 2 | 0.0500<sup>p</sup> | 0.001 | dice | pruned | 10 | 3.00 s |" in text
    assert "| 3 | **0.3500** | 1e-05 | none | the best |  | 4.50 s |" in text
    without = markdown_report(Content(read_run(make_run(tmp_path / "without"))))
    assert "Search for settings" not in without


def test_very_many_trials_are_not_listed(tmp_path: Path) -> None:
    rows = [(0.001 * each, "done", {"a": each}) for each in range(LONGEST + 1)]
    text = markdown_report(Content(write_search_run(tmp_path, rows=rows)))
    assert "Each trial stands in `trials.csv`." in text
