from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from recbias.reports.environments import load_environment
from recbias.reports.render import Content, render_markdown
from recbias.reports.run import read_run
from recbias.reports.wording import Cell, Column, Table
from support.run_folders import HOSTILE, RunSpec, make_run


def render_report(folder: Path, world: RunSpec) -> str:
    return render_markdown(Content(read_run(make_run(folder, world))))


def test_a_table_has_one_line_per_row_whatever_the_labels() -> None:
    rows = tuple((Cell(label), Cell("0.1", 0.1, best=True, mark="a")) for label in HOSTILE)
    columns = (Column("model"), Column("x", numeric=True))
    parts: Any = load_environment("md").get_template("parts.md.jinja").module
    lines = parts.table(Table("t", columns, rows)).strip().splitlines()
    assert lines[1] == "| :-- | --: |"
    assert len(lines) == 2 + len(HOSTILE)
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in lines)
    assert lines[2].endswith("| **0.1**<sup>a</sup> |")


def test_the_report_has_every_section(tmp_path: Path) -> None:
    text = render_report(tmp_path, RunSpec())
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        *("Conclusions", "Data and settings", "Results", "Agreement of the metrics", "Plots"),
        *("Significance", "Definitions", "Models", "Stages", "Provenance"),
    ]
    assert "](figures/accuracy-popularity.svg)" in text
    assert "| Random | MostPop |" in text
    assert re.search(r"\n## Stages\n\n\| stage \| kind \| duration \|", text)
    assert "\n- Queries: 5,949 users where age < 18\n" in text.replace("&lt;", "<")


def test_blocks_are_separated_by_one_blank_line(tmp_path: Path) -> None:
    text = render_report(tmp_path, RunSpec(folds=2, users=20))
    assert "\n\n\n" not in text
    assert re.search(r"[^\n]\n\n## Results\n\n\| model", text)
    assert not re.search(r"[^|\n]\n\|", text)  # a table needs a blank line before it


def test_markup_in_labels_is_escaped(tmp_path: Path) -> None:
    text = render_report(tmp_path, RunSpec(models=HOSTILE))
    assert "<script" not in text
    assert "](http" not in text.replace(r"\](http", "")
