from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots_units import compute_box, draw_hit_shares, draw_stereotypes
from recbias.reports.svg import Plot
from reports.plots.svg_reading import find_elements, read_marks, read_texts, read_tooltips
from support.plot_rows import EXPOSURE, MODELS, Measure, make_exposure_units, write_run
from support.run_folders import NINETEEN_MODELS, RunSpec


def draw(folder: Path, units: Any = None, world: RunSpec | None = None) -> list[Plot]:
    return list(draw_stereotypes(write_run(folder, [EXPOSURE], world, units), "ml-1m", str))


def test_box_equals_the_hand_calculation() -> None:
    # 1 to 9 and 30: quartiles at 3.25, 5.5 and 7.75 (linear), the box is 4.5 long, whiskers reach
    # from 3.25 - 6.75 to 7.75 + 6.75 = 14.5, that is 1 to 9; the mean is 75 / 10
    box = compute_box(np.array([*range(1, 10), 30.0]))
    assert (box.low, box.q1, box.median, box.q3, box.high) == (1, 3.25, 5.5, 7.75, 9)
    assert (box.mean, box.n) == (7.5, 10)


def test_models_are_sorted_by_their_mean(tmp_path: Path) -> None:
    (plot,) = draw(tmp_path, make_exposure_units(tuple(reversed(MODELS))))
    # BERT is the first of the reversed models: a tenth at most, then MostPop and Random
    texts = read_texts(plot)
    assert [text for text in texts if text in MODELS] == ["BERT", "MostPop", "Random"]
    _, *means = read_marks(plot, "mean")  # without the key
    assert means == sorted(means)
    assert "n 60" in texts
    assert read_tooltips(plot)[0].startswith("BERT: mean 0.049, median 0.049")
    assert "Lowest mean: BERT (0.049); highest: Random (0.147)." in plot.caption


@pytest.mark.parametrize("models", [("one",), (*NINETEEN_MODELS, "LMRec", "WOK")])
def test_any_number_of_models_is_drawn(tmp_path: Path, models: tuple[str, ...]) -> None:
    world = RunSpec(models=models, metrics=("nDCG",), users=5, items=20)
    (plot,) = draw(tmp_path, make_exposure_units(models, 10), world)
    heights = [y for _, y in read_marks(plot, "mean")][1:]
    assert len(heights) == len(models)
    assert all(b - a > 20 for a, b in itertools.pairwise(heights))


def test_equal_users_have_a_box(tmp_path: Path) -> None:
    units = make_exposure_units(MODELS, 5)
    units["value"] = [0.0] * len(units["value"])
    assert "mean 0.000" in read_tooltips(draw(tmp_path, units)[0])[0]


def test_each_target_has_a_plot(tmp_path: Path) -> None:
    units = make_exposure_units(MODELS, 6)
    units["target"] = ["kind=race" if user in {"u1", "u2"} else "" for user in units["unit_id"]]
    assert [plot.title for plot in draw(tmp_path, units)] == [
        *("REC-ST of each user's list", "REC-ST of each user's list, kind=race")
    ]


def test_metric_without_values_of_users_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(MissingEvidence, match="no value of a user"):
        draw(tmp_path)


def test_run_without_the_metric_has_no_plot(tmp_path: Path) -> None:
    assert list(draw_stereotypes(write_run(tmp_path, []), "ml-1m", str)) == []


def test_reciprocal_ranks_have_boxes_too(tmp_path: Path) -> None:
    units = make_exposure_units(MODELS, 6)
    units["metric"] = ["MRR_BAD"] * len(units["metric"])
    run = write_run(tmp_path, [replace(EXPOSURE, name="MRR_BAD")], units=units)
    (plot,) = draw_stereotypes(run, "ml-1m", str)
    assert plot.title == "MRR_BAD of each user's list"


def test_shares_of_lists_with_a_label_are_bars_in_their_order(tmp_path: Path) -> None:
    hits = Measure("HIT_BAD", {("", ""): (0.2, 0.1), ("gender=F", ""): (0.4, 0.0)}, spread=0.25)
    everyone, women = draw_hit_shares(write_run(tmp_path, [hits]), "ml-1m", str)
    assert [text for text in read_texts(everyone) if text in MODELS] == list(MODELS)
    widths = [float(bar.get("width", 0)) for bar in find_elements(everyone, "rect", "bar")]
    # 0.2, 0.45 and 0.7 from 0 on
    assert [width / widths[0] for width in widths] == pytest.approx([1, 2.25, 3.5], rel=0.01)
    assert read_tooltips(everyone, "rect")[0].startswith("Random: 0.200 (95% interval 0.1")
    assert "Lines are 95% intervals." in everyone.caption
    assert women.title == "HIT_BAD: the share of lists with a labelled item, gender=F"
    assert "intervals" not in women.caption
