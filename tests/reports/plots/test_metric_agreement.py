from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from recbias.reports.plots.drawing.svg import Figure, style_sheet
from recbias.reports.plots.metric_agreement import MOST_METRICS, STEPS, agreement, step
from recbias.reports.views.run_tables import RunTables, read_run
from support.picture_rows import Measure, run_with, shares
from support.run_folders import HOSTILE, SEVEN, World, make_run


def drawn(folder: Path, world: World) -> Figure | None:
    return agreement(read_run(make_run(folder, world)), "ml-1m", name="a")


def some(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def words(figure: Figure) -> list[str]:
    root = ET.fromstring(figure.document())
    said = [each.findtext("{*}title") for each in root.iter("{http://www.w3.org/2000/svg}rect")]
    return [each for each in said if each]


def with_values(folder: Path, values: dict[str, list[float]]) -> RunTables:
    """Return a run of four models with these figures."""
    world = World(models=SEVEN[:4], metrics=tuple(values), users=5, items=20)
    make_run(folder, world)
    frame = pd.read_csv(folder / "metrics.csv", keep_default_na=False)
    for metric, own in values.items():
        frame.loc[frame["metric"] == metric, "value"] = own
    frame.to_csv(folder / "metrics.csv", index=False)
    return read_run(folder)


def test_orders_by_hand(tmp_path: Path) -> None:
    # b is a reversed; c ties its first two: of six pairs five agree, 5 / sqrt(6 * 5) = 0.913
    run = with_values(tmp_path, {"a": [1, 2, 3, 4], "b": [4, 3, 2, 1], "c": [1, 1, 2, 3]})
    found = words(some(agreement(run, "ml-1m", name="x")))
    assert "a@10 and b@10: tau-b −1 over 4 models" in found
    assert "a@10 and c@10: tau-b 0.91 over 4 models" in found
    assert "c@10 and b@10: tau-b −0.91 over 4 models" in found


def test_colours_run_from_one_end_to_the_other(tmp_path: Path) -> None:
    run = with_values(tmp_path, {"a": [1, 2, 3, 4], "b": [4, 3, 2, 1], "c": [1, 2, 3, 4]})
    body = some(agreement(run, "ml-1m", name="x")).body
    assert body.count('class="step-8"') == 2 + 1  # a and c, and the key
    assert body.count('class="step-0"') == 4 + 1
    sheet = style_sheet()
    assert [at for at in range(STEPS) if sheet.count(f".step-{at} ") != 2] == []
    assert step(5.0) == STEPS - 1


def test_the_matrix_has_each_pair_twice_with_its_figure(tmp_path: Path) -> None:
    metrics = ("nDCG", "HR", "MRR", "ARP")
    picture = some(drawn(tmp_path, World(models=SEVEN, metrics=metrics, users=30, items=30)))
    assert len(words(picture)) == 4 * 3
    assert "over 7 models" in picture.caption
    assert "between 4 metrics" in picture.caption
    for pair in ("nDCG@10 and HR@10", "HR@10 and nDCG@10"):
        assert sum(each.startswith(f"{pair}: tau-b") for each in words(picture)) == 1


@pytest.mark.parametrize(
    ("models", "metrics"),
    [
        (SEVEN[:3], ("nDCG", "HR", "MRR")),  # three models
        (SEVEN, ("nDCG", "HR")),  # two metrics
    ],
)
def test_too_few_say_nothing(
    tmp_path: Path, models: tuple[str, ...], metrics: tuple[str, ...]
) -> None:
    assert drawn(tmp_path, World(models=models, metrics=metrics, users=9, items=20)) is None


def test_a_tie_over_all_models_is_said(tmp_path: Path) -> None:
    make_run(tmp_path, World(models=SEVEN, metrics=("nDCG", "HR", "MRR"), users=9, items=20))
    frame = pd.read_csv(tmp_path / "metrics.csv")
    frame.loc[frame["metric"] == "HR", "value"] = 1.0
    frame.to_csv(tmp_path / "metrics.csv", index=False)
    picture = some(agreement(read_run(tmp_path), "ml-1m", name="a"))
    assert [each.count("n/a") for each in words(picture)].count(1) == 4
    assert "n/a: a metric is the same for all models" in picture.caption


def test_of_very_many_metrics_the_first_are_drawn(tmp_path: Path) -> None:
    metrics = tuple(f"m{at}" for at in range(20))
    picture = some(drawn(tmp_path, World(models=SEVEN, metrics=metrics, users=5, items=20)))
    assert len(words(picture)) == MOST_METRICS * (MOST_METRICS - 1)
    assert "4 more metrics are not drawn." in picture.caption


def test_hostile_metrics_are_letters(tmp_path: Path) -> None:
    names = tuple(each.replace("(", "").replace(")", "") for each in HOSTILE)
    picture = some(drawn(tmp_path, World(models=SEVEN, metrics=names, users=5, items=20)))
    assert "<script" not in picture.inline()


def test_figures_by_part_are_no_figures_of_a_model(tmp_path: Path) -> None:
    world = World(models=SEVEN, metrics=("nDCG", "HR"), users=5, items=20)
    run = run_with(tmp_path, [shares()], world)
    assert agreement(run, "ml-1m", name="a") is None


def test_gaps_between_groups_are_not_compared(tmp_path: Path) -> None:
    world = World(models=SEVEN, metrics=("nDCG", "HR"), users=5, items=20)
    gap = Measure("nDCG", {("", ""): (0.1, 0.0)}, {"by": "x", "gap": "std"}, spread=0.1)
    assert agreement(run_with(tmp_path, [gap], world), "ml-1m", name="a") is None
