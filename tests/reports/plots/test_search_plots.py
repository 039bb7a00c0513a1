from __future__ import annotations

import math
from pathlib import Path

from recbias.reports.plots.search_plots import search_figures
from recbias.reports.views.run_tables import read_run
from support.run_folders import HOSTILE, World, make_run
from support.search_rows import add_search, searched


def test_each_search_has_its_figures(tmp_path: Path) -> None:
    (found,) = search_figures(searched(tmp_path))
    assert [each.name for each in found.figures] == ["search-slim", "importance-slim"]


def test_a_figure_that_cannot_be_drawn_is_left_out(tmp_path: Path) -> None:
    unknown = {"alpha": math.nan, "similarity": math.nan}
    (found,) = search_figures(searched(tmp_path, importances=unknown))
    assert [each.name for each in found.figures] == ["search-slim"]


def test_no_two_figures_have_one_name(tmp_path: Path) -> None:
    make_run(tmp_path, World(users=20))
    for each in (*HOSTILE, "A b", "a-b"):
        add_search(tmp_path, place={"model": each})
    found = search_figures(read_run(tmp_path))
    names = [figure.name for each in found for figure in each.figures]
    assert len(names) == len(set(names)) == 2 * 7
