from __future__ import annotations

import math
from pathlib import Path

from recbias.reports.plots.search_plots import draw_search_plots
from recbias.reports.views.run_tables import read_run
from recbias.reports.writers.html_trials import searching
from support.run_folders import HOSTILE, RunSpec, make_run
from support.search_rows import add_search, write_search_run


def test_the_first_search_is_open_and_the_others_are_folded(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(users=20))
    for fold in (1, 2, 3):
        add_search(tmp_path, fit={"fold": fold})
    text = searching(draw_search_plots(read_run(tmp_path)))
    assert text.count("<details") == 3
    assert text.count('<details open=""') == 1
    assert text.count("<svg") == 6
    assert text.count("<table") == 1 + 3
    assert "SLIM, fold 2: nDCG@10 0.3500 in trial 3 of 5" in text


def test_what_cannot_be_told_is_said_and_not_drawn(tmp_path: Path) -> None:
    text = searching(
        draw_search_plots(write_search_run(tmp_path, importances={"alpha": math.nan}))
    )
    assert "Which settings mattered cannot be told" in text
    assert text.count("<svg") == 1


def test_labels_are_text_and_never_markup(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(users=20))
    for each in HOSTILE:
        settings = {each: each, "<img src=x>": "<script>"}
        add_search(tmp_path, fit={"model": each}, rows=[(0.1, "done", settings)] * 3)
    text = searching(draw_search_plots(read_run(tmp_path)))
    assert "<script>" not in text
    assert "<img" not in text


def test_many_trials_scroll_in_their_box(tmp_path: Path) -> None:
    rows = [(0.1 * each, "done", {"a": each}) for each in range(20)]
    assert "box tall" in searching(draw_search_plots(write_search_run(tmp_path / "a", rows=rows)))
    assert "box tall" not in searching(draw_search_plots(write_search_run(tmp_path / "b")))
