from __future__ import annotations

import math
from pathlib import Path

import pytest
from scipy.stats import kendalltau

from picture_rows import run_with, texts, words
from recbias.reports.frame import read_run
from recbias.reports.pictures.agreement import MOST_METRICS, agreement, tau
from recbias.reports.pictures.picture import Picture
from run_folders import HOSTILE, SEVEN, World, make_run


def drawn(folder: Path, world: World) -> list[Picture]:
    return list(agreement(read_run(make_run(folder, world)), "ml-1m", str))


def test_two_opposite_orders_and_ties_by_hand() -> None:
    a = {"w": 1.0, "x": 2.0, "y": 3.0, "z": 4.0}
    assert tau(a, a) == (1.0, 4)
    assert tau(a, {key: -value for key, value in a.items()}) == (-1.0, 4)
    # against 1, 1, 2, 3: of six pairs five agree and one is tied: 5 / sqrt(6 * 5)
    tied = {"w": 1.0, "x": 1.0, "y": 2.0, "z": 3.0}
    assert tau(a, tied)[0] == pytest.approx(5 / math.sqrt(30))
    assert tau(a, tied)[0] == pytest.approx(kendalltau([1, 2, 3, 4], [1, 1, 2, 3]).statistic)


def test_a_metric_that_is_the_same_everywhere_has_no_order() -> None:
    a = {"w": 1.0, "x": 2.0, "y": 3.0, "z": 4.0}
    assert math.isnan(tau(a, dict.fromkeys(a, 0.5))[0])
    few, n = tau(a, {"w": 1.0, "x": 2.0, "y": 3.0})
    assert math.isnan(few)
    assert n == 3


def test_the_matrix_has_each_pair_twice_with_its_figure(tmp_path: Path) -> None:
    metrics = ("nDCG", "HR", "MRR", "ARP")
    (picture,) = drawn(tmp_path, World(models=SEVEN, metrics=metrics, users=30, items=30))
    assert len(words(picture)) == 4 * 3
    assert "over 7 models" in picture.caption
    assert "between 4 metrics" in picture.caption
    assert sum(each.startswith("nDCG@10 and HR@10: tau-b") for each in words(picture)) == 2


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
    assert drawn(tmp_path, World(models=models, metrics=metrics, users=9, items=20)) == []


def test_a_tie_over_all_models_is_said(tmp_path: Path) -> None:
    import pandas as pd

    make_run(tmp_path, World(models=SEVEN, metrics=("nDCG", "HR", "MRR"), users=9, items=20))
    frame = pd.read_csv(tmp_path / "metrics.csv")
    frame.loc[frame["metric"] == "HR", "value"] = 1.0
    frame.to_csv(tmp_path / "metrics.csv", index=False)
    (picture,) = agreement(read_run(tmp_path), "ml-1m", str)
    assert texts(picture).count("n/a") == 4
    assert "n/a: a metric is the same for all models" in picture.caption


def test_of_very_many_metrics_the_first_are_drawn(tmp_path: Path) -> None:
    metrics = tuple(f"m{at}" for at in range(20))
    (picture,) = drawn(tmp_path, World(models=SEVEN, metrics=metrics, users=5, items=20))
    assert len(words(picture)) == MOST_METRICS * (MOST_METRICS - 1)
    assert "4 more metrics are not drawn." in picture.caption


def test_hostile_metrics_are_letters(tmp_path: Path) -> None:
    names = tuple(each.replace("(", "").replace(")", "") for each in HOSTILE)
    (picture,) = drawn(tmp_path, World(models=SEVEN, metrics=names, users=5, items=20))
    assert "<script" not in picture.inline()


def test_figures_by_part_are_no_figures_of_a_model(tmp_path: Path) -> None:
    from picture_rows import shares

    world = World(models=SEVEN, metrics=("nDCG", "HR"), users=5, items=20)
    assert list(agreement(run_with(tmp_path, [shares()], world), "ml-1m", str)) == []
