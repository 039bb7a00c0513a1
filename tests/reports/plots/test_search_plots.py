from __future__ import annotations

import math
from pathlib import Path

from recbias.reports.plots.search_plots import draw_search_plots
from recbias.reports.views.run_tables import read_run
from support.run_folders import HOSTILE, RunSpec, make_run
from support.search_rows import add_search, write_search_run


def test_each_search_has_progress_and_importance(tmp_path: Path) -> None:
    (search,) = draw_search_plots(write_search_run(tmp_path))
    assert [plot.name for plot in search.plots] == ["search-slim", "importance-slim"]


def test_plot_without_a_known_value_is_omitted(tmp_path: Path) -> None:
    unknown = {"alpha": math.nan, "similarity": math.nan}
    (search,) = draw_search_plots(write_search_run(tmp_path, importances=unknown))
    assert [plot.name for plot in search.plots] == ["search-slim"]


def test_plot_names_are_unique(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(users=20))
    for model in (*HOSTILE, "A b", "a-b"):
        add_search(tmp_path, fit={"model": model})
    searches = draw_search_plots(read_run(tmp_path))
    names = [plot.name for search in searches for plot in search.plots]
    assert len(names) == len(set(names)) == 2 * 7
