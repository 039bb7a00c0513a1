from __future__ import annotations

from pathlib import Path

from recbias.reports.render import Content
from recbias.reports.run import read_run
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


def test_families_count_their_significant_comparisons_and_come_with_a_plot(tmp_path: Path) -> None:
    content = load_content(tmp_path, RunSpec(models=("Random", "EASE"), metrics=("nDCG",)))
    (family,) = content.families
    assert (family.title, family.outcome) == ("nDCG@10", "nDCG@10: 1 of 1")
    assert family.plot is not None
    assert family.plot.name == "significance-ndcg-10"
    assert family.plot.svg.startswith("<svg")
    assert [row[-2].text for row in content.pairs.rows] == ["yes"]
