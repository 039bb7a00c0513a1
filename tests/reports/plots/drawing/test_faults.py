from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from recbias.reports.plots import album as album_module
from recbias.reports.plots import gallery as gallery_module
from recbias.reports.plots.drawing.faults import describe_fault, draw_or_tell
from recbias.reports.plots.gallery import gallery
from recbias.reports.views.run_tables import read_run
from support.run_folders import World, make_run


def fail(*_: object, **__: object) -> None:
    message = "no room"
    raise OverflowError(message)


def test_a_plot_that_fails_is_told() -> None:
    faults: list[str] = []
    assert draw_or_tell("Tail", fail, faults) == ()
    assert draw_or_tell("Tail", lambda: None, faults) == ()
    assert faults == ["Tail: it could not be drawn (OverflowError: no room)."]
    assert describe_fault("a", MemoryError()) == "a: it could not be drawn (MemoryError)."


@pytest.mark.parametrize("name", ["scatter", "tail", "popularity", "matrix", "agreement"])
def test_a_plot_that_fails_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run = read_run(make_run(tmp_path, World(metrics=("nDCG", "ARP"))))
    whole = {each.name for each in gallery(run).figures()}
    monkeypatch.setattr(gallery_module, name, fail)
    found = gallery(run)
    assert {each.name for each in found.figures()} <= whole
    assert found.figures()
    assert sum("could not be drawn (OverflowError: no room)" in each for each in found.skipped)


def test_a_picture_that_fails_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawings: dict[str, Callable[..., object]] = {"Figures by group": fail}
    monkeypatch.setattr(album_module, "OF_FIGURES", drawings)
    found = gallery(read_run(make_run(tmp_path)))
    assert found.figures()
    assert "Figures by group: it could not be drawn (OverflowError: no room)." in found.skipped
