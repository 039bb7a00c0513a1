from __future__ import annotations

from pathlib import Path

import pytest

from recbias.reports import gallery as gallery_module
from recbias.reports.gallery import draw_gallery
from recbias.reports.run import read_run
from support.run_folders import RunSpec, make_run

FAULT = "the plot failed (OverflowError: no room)."


def fail(*_: object, **__: object) -> None:
    message = "no room"
    raise OverflowError(message)


@pytest.mark.parametrize(
    "name",
    [
        *("draw_scatter", "draw_long_tail", "draw_popularity", "draw_win_matrix"),
        "draw_metric_agreement",
    ],
)
def test_failing_plot_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run = read_run(make_run(tmp_path, RunSpec(metrics=("nDCG", "ARP"))))
    names = {plot.name for plot in draw_gallery(run).plots()}
    monkeypatch.setattr(gallery_module, name, fail)
    gallery = draw_gallery(run)
    assert gallery.plots()
    assert {plot.name for plot in gallery.plots()} <= names
    assert sum(FAULT in sentence for sentence in gallery.skipped)
