from __future__ import annotations

from pathlib import Path

import pytest

from recbias.reports import gallery as gallery_module
from recbias.reports.gallery import Gallery, draw_gallery
from recbias.reports.plots import draw_scatters
from recbias.reports.run import read_run
from reports.plots.svg_reading import read_marks
from support.plot_rows import (
    EXPOSURE,
    MODELS,
    PROJECTION,
    Measure,
    make_exposure_units,
    make_group_measure,
    make_projection_units,
    make_shares,
    merge_units,
    write_run,
)
from support.run_folders import RunSpec, make_run

FIVE = (*MODELS, "ALS", "EASE")
WIDE = RunSpec(models=FIVE, metrics=("nDCG", "HR", "ARP"), users=12, items=30)
MEASURES = [
    make_shares(),
    Measure("association", {(f"gender={end}", "food=Tea"): (0.1, 0.1) for end in "FM"}),
    make_group_measure(("gender=F", "gender=M", "gender=X")),
    EXPOSURE,
    PROJECTION,
]
PAPER_KINDS = ["exposure", "projection", "groups", "levels", "association"]


def list_names(gallery: Gallery) -> list[str]:
    return [plot.name for plot in gallery.plots]


def list_paper_kinds(gallery: Gallery) -> list[str]:
    kinds = [name.partition("-")[0] for name in list_names(gallery)]
    return list(dict.fromkeys(kind for kind in kinds if kind in PAPER_KINDS))


def test_run_has_an_overview(tmp_path: Path) -> None:
    gallery = draw_gallery(read_run(make_run(tmp_path, RunSpec(metrics=("nDCG", "ARP")))))
    assert list_names(gallery) == [
        *("accuracy-popularity", "long-tail"),
    ]
    assert gallery.failed == ()


def test_run_with_every_metric_has_every_paper_plot(tmp_path: Path) -> None:
    units = merge_units(make_exposure_units(FIVE), make_projection_units(FIVE, 10))
    gallery = draw_gallery(write_run(tmp_path, MEASURES, WIDE, units))
    assert gallery.failed == ()
    assert len(set(list_names(gallery))) == len(gallery.plots)
    assert list_paper_kinds(gallery) == PAPER_KINDS


def test_each_dataset_has_its_plots(tmp_path: Path) -> None:
    world = RunSpec(metrics=("nDCG", "ARP"), datasets=("A|1", "A/1"), users=20)
    assert list_names(draw_gallery(read_run(make_run(tmp_path, world)))) == [
        *("accuracy-popularity-a-1", "long-tail-a-1"),
        *("accuracy-popularity-a-1-2", "long-tail-a-1-2"),
    ]


def fail(*_: object, **__: object) -> None:
    message = "no room"
    raise OverflowError(message)


def test_failing_plot_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = read_run(make_run(tmp_path, RunSpec(metrics=("nDCG", "ARP"))))
    monkeypatch.setattr(gallery_module, "_OVERVIEW", {"Scatter": fail, **gallery_module._OVERVIEW})
    gallery = draw_gallery(run)
    assert list_names(gallery) == ["accuracy-popularity", "long-tail"]
    (failed,) = gallery.failed
    assert failed.startswith("Scatter: the plot failed (OverflowError: no room")


def test_better_models_stand_further_right_and_more_popular_ones_higher(tmp_path: Path) -> None:
    world = RunSpec(models=("Random", "MostPop", "PureSVD"))
    points = read_marks(next(draw_scatters(read_run(make_run(tmp_path, world)), "ml-1m", str)))
    assert points == sorted(points, key=lambda point: point[0])  # 0.01, 0.16, 0.31
    assert points == sorted(points, key=lambda point: -point[1])  # -0.6, -0.3, 0.0
