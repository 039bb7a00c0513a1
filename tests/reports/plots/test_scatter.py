from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.markup import one_line
from recbias.reports.plots.scatter import OTHERS, scatter
from recbias.reports.views.run_tables import RunTables, read_run
from support.picture_rows import EXPOSURE, Measure, by_group, run_with
from support.run_folders import HOSTILE, World, make_run


def run_of(folder: Path, world: World) -> RunTables:
    return read_run(make_run(folder, world))


def circles(run: RunTables) -> list[ET.Element]:
    root = ET.fromstring(scatter(run, "ml-1m", name="s").document())
    return root.findall("{*}circle")


def test_better_models_stand_higher_and_more_popular_ones_further_right(tmp_path: Path) -> None:
    run = run_of(tmp_path, World(models=("Random", "MostPop", "PureSVD")))
    drawn = circles(run)
    heights = [float(each.get("cy", "")) for each in drawn]
    places = [float(each.get("cx", "")) for each in drawn]
    assert heights == sorted(heights, reverse=True)  # 0.01, 0.16, 0.31
    assert places == sorted(places)  # -0.6, -0.3, 0.0


def test_tooltips_have_figure_and_interval(tmp_path: Path) -> None:
    drawn = circles(run_of(tmp_path, World(models=HOSTILE)))
    said = [each.findtext("{*}title") or "" for each in drawn]
    assert [each.startswith(one_line(label)) for each, label in zip(said, HOSTILE, strict=True)]
    assert "95% interval" in said[0]


def test_a_model_without_both_figures_is_left_out(tmp_path: Path) -> None:
    make_run(tmp_path)
    path = tmp_path / "metrics.csv"
    frame = pd.read_csv(path)
    frame.loc[(frame["model"] == "EASE") & (frame["metric"] == "nDCG"), "value"] = None
    frame.to_csv(path, index=False)
    assert len(circles(read_run(tmp_path))) == 6


def test_without_intervals_there_are_points_only(tmp_path: Path) -> None:
    make_run(tmp_path)
    path = tmp_path / "metrics.csv"
    pd.read_csv(path).assign(ci_low=None, ci_high=None).to_csv(path, index=False)
    figure = scatter(read_run(tmp_path), "ml-1m", name="s")
    assert "whisker" not in figure.body
    assert "95%" not in figure.caption


@pytest.mark.parametrize(
    ("metrics", "says"),
    [
        (("nDCG",), "no metric of popularity"),
        (("ARP",), "no metric of accuracy"),
    ],
)
def test_a_missing_metric_is_a_reason(tmp_path: Path, metrics: tuple[str, ...], says: str) -> None:
    with pytest.raises(MissingEvidence, match=says) as caught:
        scatter(run_of(tmp_path, World(metrics=metrics)), "ml-1m", name="s")
    assert caught.value.remedy.startswith("measure ")


@pytest.mark.parametrize("metric", ["ARP", "Gini"])
def test_other_metrics_of_popularity_will_do(tmp_path: Path, metric: str) -> None:
    figure = scatter(run_of(tmp_path, World(metrics=("HR", metric))), "ml-1m", name="s")
    assert figure.title == f"HR@10 against {metric}@10"


def test_a_single_model_can_be_drawn(tmp_path: Path) -> None:
    assert len(circles(run_of(tmp_path, World(models=("only",))))) == 1


def test_stereotypes_stand_across_where_the_run_has_them(tmp_path: Path) -> None:
    run = run_with(tmp_path, [EXPOSURE])
    figure = scatter(run, "ml-1m", name="s", family=OTHERS[0])
    assert figure.title == "nDCG@10 against REC-ST"
    assert "lower is better" in figure.body


def test_a_bias_without_a_whole_figure_is_shown_by_its_first_part(tmp_path: Path) -> None:
    parts = {("race=black", "price=$"): (0.7, 0.1), ("race=white", "price=$"): (0.3, 0.1)}
    run = run_with(tmp_path, [Measure("price_percentage", parts, direction="zero", spread=0.1)])
    figure = scatter(run, "ml-1m", name="s", family=OTHERS[1])
    assert figure.title == "nDCG@10 against price_percentage race=black price=$"


def test_a_metric_by_group_is_not_the_accuracy_of_a_model(tmp_path: Path) -> None:
    world = World(metrics=("ARP",), users=20)
    run = run_with(tmp_path, [by_group(("gender=F", "gender=M"))], world)
    with pytest.raises(MissingEvidence, match="no metric of accuracy"):
        scatter(run, "ml-1m", name="s")
