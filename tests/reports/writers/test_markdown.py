from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from recbias.reports.environments import load_environment
from recbias.reports.render import LONGEST_TABLE, Content, render_markdown
from recbias.reports.run import read_run
from recbias.reports.wording import Cell, Column, Table
from support.models.search_rows import write_search_run
from support.run_folders import HOSTILE, NINETEEN_MODELS, RunSpec, make_run


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


def test_failures_and_warnings_come_first(tmp_path: Path) -> None:
    failures = [{"stage": "fit X", "message": "<boom>"}]
    text = render_report(tmp_path, RunSpec(failures=failures, warnings=["w|w"]))
    assert text.index("## Failures") < text.index("## Warnings") < text.index("## Results")
    assert "&lt;boom&gt;" in text
    assert r"w\|w" in text


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


def test_many_comparisons_are_counted_instead_of_listed(tmp_path: Path) -> None:
    text = render_report(tmp_path, RunSpec(models=NINETEEN_MODELS, metrics=("HR",), lists=False))
    assert re.search(r"Significant: HR@10: \d+ of 171\.", text)
    assert "All comparisons are in `significance.csv`." in text
    assert len(text.splitlines()) < 250


def test_markup_in_labels_is_escaped(tmp_path: Path) -> None:
    text = render_report(tmp_path, RunSpec(models=HOSTILE))
    assert "<script" not in text
    assert "](http" not in text.replace(r"\](http", "")


def test_searches_have_a_section(tmp_path: Path) -> None:
    text = render_markdown(Content(write_search_run(tmp_path)))
    assert "## Hyperparameter search" in text
    assert "### SLIM" in text
    assert re.search(r"!\[.*SLIM\]\(figures/importance-slim\.svg\)", text)
    assert "| 2 | 0.0500<sup>p</sup> | 0.001 | dice | pruned | 10 | 3.00 s |" in text
    assert "| 3 | **0.3500** | 1e-05 | none | best |  | 4.50 s |" in text
    without = render_markdown(Content(read_run(make_run(tmp_path / "without"))))
    assert "Hyperparameter search" not in without


def test_many_trials_are_not_listed(tmp_path: Path) -> None:
    rows = [(0.001 * at, "done", {"a": at}) for at in range(LONGEST_TABLE + 1)]
    text = render_markdown(Content(write_search_run(tmp_path, rows=rows)))
    assert "All trials are in `trials.csv`." in text
