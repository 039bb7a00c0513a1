from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.tables import build_settings_tables, build_summary, collect_variants
from recbias.reports.write import write_reports
from support.swept_runs import Settings, read_swept_run


def test_settings_that_differ_are_found_at_any_depth(tmp_path: Path) -> None:
    (group,) = collect_variants(read_swept_run(tmp_path))
    assert group.name == "ItemKNN"
    assert group.names == ["neighbors", "llm.shrink"]
    assert group.settings["knn 5 10"] == {"neighbors": 5, "llm.shrink": 10}
    assert group.axis == "neighbors"


def test_switch_and_missing_setting_are_columns_without_an_axis(tmp_path: Path) -> None:
    models: Settings = {
        "a": ("ItemKNN", {"binary": True, "neighbors": 2}),
        "b": ("ItemKNN", {"binary": False}),
    }
    run = read_swept_run(tmp_path, models)
    (group,) = collect_variants(run)
    assert (group.names, group.axis) == (["binary", "neighbors"], "")
    (table,) = build_settings_tables(run)
    assert [[cell.text for cell in row[:2]] for row in table.rows] == [
        ["true", "2"],
        ["false", "null"],
    ]


@pytest.mark.parametrize("datasets", [("ml-1m",), ("ml-1m", "books")])
def test_table_has_the_results_of_the_summary(tmp_path: Path, datasets: tuple[str, ...]) -> None:
    run = read_swept_run(tmp_path, datasets=datasets)
    (table,), summary = build_settings_tables(run), build_summary(run)
    titles = [column.title for column in table.columns]
    n = titles.index("neighbors")
    assert titles[n : n + 2] == ["neighbors", "llm.shrink"]
    assert titles[n + 2 :] == [column.title for column in summary.columns[n + 1 :]]
    values = {
        (*(cell.text for cell in row[:n]), f"knn {row[n].text} {row[n + 1].text}"): row[
            n + 2
        ].value
        for row in table.rows
    }
    expected = {tuple(c.text for c in row[: n + 1]): row[n + 1].value for row in summary.rows}
    assert values == {key: value for key, value in expected.items() if key[-1] != "MostPop"}
    assert len(values) == 6 * (3 if len(datasets) > 1 else 1)
    assert [row[n].value for row in table.rows[:3]] == [80, 5, 20]


def test_every_format_has_the_table(tmp_path: Path) -> None:
    run = read_swept_run(tmp_path)
    write_reports(run.folder, formats=("md", "html", "latex"))
    title = "Results by the settings of ItemKNN"
    for name in ("report.md", "report.html"):
        assert title in (tmp_path / name).read_text(encoding="utf-8")
    latex = tmp_path / "tables" / "results-by-the-settings-of-itemknn.tex"
    assert "neighbors" in latex.read_text(encoding="utf-8")
    metrics = pd.read_csv(tmp_path / "metrics.csv")
    rows = metrics[(metrics["model"] == "knn 20 0") & (metrics["metric"] == "nDCG")]
    (line,) = [
        line
        for line in (tmp_path / "report.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| 20 | 0 |")
    ]
    assert f"{rows['value'].iloc[0]:.4f}" in line
