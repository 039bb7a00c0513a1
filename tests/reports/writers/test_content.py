from __future__ import annotations

from pathlib import Path

from recbias.reports.render import Content
from recbias.reports.run import read_run
from support.hand_worked_runs import compare, state, write_run
from support.models.search_rows import write_search_run
from support.run_folders import RunSpec, make_run


def load_content(folder: Path, world: RunSpec) -> Content:
    return Content(read_run(make_run(folder, world)))


def test_tables_are_ordered_from_summary_to_folds(tmp_path: Path) -> None:
    world = RunSpec(folds=2, users=20, parts=(("age=1", ""),), metrics=("HR",))
    assert [table.title for table in load_content(tmp_path, world).tables] == [
        "Results",
        "HR@10 by group",
        "Each dataset, seed and fold",
    ]


def test_plot_titles_name_the_dataset_if_there_are_several(tmp_path: Path) -> None:
    content = load_content(tmp_path, RunSpec(datasets=("x", "y"), users=20))
    titles = {plot.name: plot.title for plot in content.plots}
    assert titles["long-tail-x"].endswith(", x")
    assert titles["long-tail-y"].endswith(", y")


def test_families_count_their_significant_comparisons_and_come_with_a_plot(tmp_path: Path) -> None:
    content = load_content(tmp_path, RunSpec(models=("Random", "EASE"), metrics=("nDCG",)))
    (family,) = content.families
    assert (family.title, family.outcome) == ("nDCG@10", "nDCG@10: 1 of 1")
    assert family.plot is not None
    assert family.plot.name == "significance-ndcg-10"
    assert family.plot.svg.startswith("<svg")
    assert [row[-2].text for row in content.pairs.rows] == ["yes"]


def test_metrics_with_the_same_tests_share_a_line(tmp_path: Path) -> None:
    world = RunSpec(models=("Random", "EASE"), metrics=("nDCG", "HR(by=gender, gap=difference)"))
    (line,) = load_content(tmp_path, world).methods
    method = "Between models: paired t-test, Bonferroni over one comparison, alpha 0.05"
    assert line == f"{method}. Significant: nDCG@10: 1 of 1; HR@10, gap by gender: 1 of 1."


def test_comparisons_without_a_p_value_are_undefined_and_not_counted(tmp_path: Path) -> None:
    missing = {"p": None, "p_adjusted": None, "family_size": 0, "test": "chi_squared"}
    row = compare("x", "y", (0.2, 0.5), 0.1, **missing)
    content = Content(write_run(tmp_path, [state("x", 0.2), state("y", 0.5)], [row]))
    assert content.methods == ["Between models: chi-squared test, no p-value. Undefined: nDCG@10."]
    assert [cells[-2].text for cells in content.pairs.rows] == ["undefined"]


def test_families_name_the_dataset_if_there_are_several(tmp_path: Path) -> None:
    world = RunSpec(models=("a", "b"), metrics=("HR",), datasets=("x", "y"), users=20)
    titles = [family.title for family in load_content(tmp_path, world).families]
    assert titles == ["HR@10, x", "HR@10, y"]


def test_searches_have_their_plots(tmp_path: Path) -> None:
    (plotted,) = Content(write_search_run(tmp_path)).searches
    assert (plotted.search.title, len(plotted.plots)) == ("SLIM", 2)
