from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.reports.gallery import draw_first_picture
from recbias.reports.run import RunTables, read_run
from recbias.reports.svg import Plot
from reports.plots.svg_reading import (
    find_elements,
    find_marks,
    read_marks,
    read_texts,
    require_plot,
)
from support.plot_rows import make_group_measure, write_run
from support.run_folders import RunSpec, make_run

PAIR = ("gender=F", "gender=M")
TITLE = "nDCG(by=gender, gap=groups)"
MODELS = ("MostPop", "x", "y")


def draw(run: RunTables, subject: str, reference: pd.DataFrame | None = None) -> Plot:
    return require_plot(draw_first_picture(run, subject, name="answer", reference=reference))


def write_groups(folder: Path, checks: list[dict[str, Any]] | None = None) -> RunTables:
    """Write 0.20 and 0.23 for the groups of MostPop, 0.02 more for x and y; y differs."""
    world = RunSpec(models=MODELS, metrics=("nDCG",), users=12, items=30)
    write_run(folder, [make_group_measure(PAIR)], world)
    tests = pd.read_csv(folder / "significance.csv", keep_default_na=False)
    rows = [
        {**tests.iloc[0], "model": model, "metric": TITLE, "k": "", "test": "welch_t"}
        | {"between": "groups", "a": PAIR[0], "b": PAIR[1], "significant": model == "y"}
        for model in MODELS
    ]
    pd.concat([tests, pd.DataFrame(rows)]).to_csv(folder / "significance.csv", index=False)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["checks"] = checks or []
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return read_run(folder)


def test_users_in_no_group_are_counted(tmp_path: Path) -> None:
    """Of 5,949 users 40 + 60 are in a group, and 3 more whose value is undefined."""
    write_groups(tmp_path)
    metrics = pd.read_csv(tmp_path / "metrics.csv", keep_default_na=False)
    for group, n, undefined in ((PAIR[0], 40, 3), (PAIR[1], 60, 0)):
        metrics.loc[metrics["group"] == group, ["n", "undefined"]] = [n, undefined]
    metrics.to_csv(tmp_path / "metrics.csv", index=False)
    plot = draw(read_run(tmp_path), "groups")
    assert "5,846 users without gender not drawn." in plot.caption


def make_check(model: str, verdict: str, metric: str = TITLE, group: str = "") -> dict[str, Any]:
    return {
        "dataset": "ml-1m",
        "seed": "42",
        "fold": "1",
        "metric": metric,
        "k": None,
        "model": model,
        "group": group,
        "target": "",
        "baseline": "",
        "value": 0.2,
        "ci_low": 0.1,
        "ci_high": 0.3,
        "limit": "at least 0.21",
        "basis": "interval",
        "verdict": verdict,
        "failed": verdict == "fail",
        "strict": False,
    }


def test_groups_are_dots_and_significant_gaps_are_shaded(tmp_path: Path) -> None:
    plot = draw(write_groups(tmp_path), "groups")
    assert plot.title == "nDCG by gender"
    assert [text for text in read_texts(plot) if text in MODELS] == ["x", "y"]  # no baseline
    assert len(find_marks(plot)) == 4
    assert {"gap 0.0300", "gap 0.0300 *"} <= set(read_texts(plot))
    (shade,) = find_elements(plot, "rect", "gap")
    y_marks = [mark for title, mark in find_marks(plot).items() if title.startswith("y,")]
    assert float(shade.get("width", "")) == pytest.approx(y_marks[1][0] - y_marks[0][0], abs=0.2)
    assert "Not drawn: MostPop." in plot.caption


def test_checks_of_groups_have_their_limit_and_verdicts(tmp_path: Path) -> None:
    checks = [make_check("x", "pass", group=PAIR[0]), make_check("y", "fail", group=PAIR[0])]
    plot = draw(write_groups(tmp_path, checks), "checks")
    texts = read_texts(plot)
    assert {"limit 0.21", "✓ pass", "✗ fail"} <= set(texts)
    (line,) = {element.get("x1") for element in find_elements(plot, "line", "neutral")[:1]}
    places = sorted(x for x, _ in find_marks(plot, "x, ").values())  # 0.22 and 0.25
    assert float(line or "") < places[0]


def test_a_check_without_groups_shows_every_model(tmp_path: Path) -> None:
    plot = draw(write_groups(tmp_path, [make_check("y", "fail", "nDCG") | {"k": 10}]), "checks")
    assert {*MODELS, "✗ fail", "limit 0.21"} <= set(read_texts(plot))
    assert len(read_marks(plot, "open")) == 1  # the baseline is hollow


def test_models_are_accuracy_against_bias_with_hollow_baselines(tmp_path: Path) -> None:
    world = RunSpec(models=("Random", "MostPop", "EASE"), users=20)
    plot = draw(read_run(make_run(tmp_path, world)), "models")
    assert plot.title == "popularity bias (log) against nDCG"
    assert len(read_marks(plot, "dot")) == 3
    assert len(read_marks(plot, "open")) == 2
    assert "Hollow points are baselines." in plot.caption


def test_published_values_are_shown_by_their_differences_and_those_beyond_are_named(
    tmp_path: Path,
) -> None:
    run = read_run(make_run(tmp_path, RunSpec(users=5)))
    rows = [("A", 0.5, 0.505), ("B", 0.4, 0.45), ("C", 0.6, 0.2)]
    reference = pd.DataFrame(
        [
            {"system": name, "metric": "HR", "published": published, "measured": measured}
            | {"difference": measured - published, "within": abs(measured - published) <= 0.01}
            for name, published, measured in rows
        ]
    )
    plot = draw(run, "reference", reference)
    marks = {title.partition(",")[0]: mark for title, mark in find_marks(plot).items()}
    (line,) = find_elements(plot, "line", "zero")
    zero = float(line.get("y1", ""))
    assert marks["C"][1] > zero > marks["A"][1] > marks["B"][1]  # above: measured is higher
    texts = read_texts(plot)
    assert {"B, HR", "C, HR"} <= set(texts)
    assert "A, HR" not in texts
    assert "(1 of 3)" in plot.caption


def test_a_run_without_results_has_no_picture(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(users=5))
    metrics = pd.read_csv(tmp_path / "metrics.csv")
    metrics.head(0).to_csv(tmp_path / "metrics.csv", index=False)
    assert draw_first_picture(read_run(tmp_path), "models", name="answer") is None


def test_a_claim_shows_its_estimate_beside_zero(tmp_path: Path) -> None:
    run = write_groups(tmp_path)
    claim = {"claim": "nDCG of x is higher than that of y", "verdict": "holds", "problem": ""}
    found = {**claim, "estimate": 0.2, "ci_low": 0.1, "ci_high": 0.3}
    asked = {"model": "x", "against": "y", "direction": "higher"}
    run = replace(run, manifest={**run.manifest, "claim": found})
    run.spec["claim"] = asked
    plot = draw(run, "claim")
    assert plot.title == "The estimate of the claim"
    assert {"x \N{MINUS SIGN} y", "0"} <= {*read_texts(plot)}
    assert len(find_marks(plot)) == 1
