from __future__ import annotations

from pathlib import Path

import pandas as pd

from recbias.reports.views.run_tables import read_run
from recbias.reports.writers.content import Content, reference_table
from support.run_folders import RunSpec, make_run
from support.search_rows import write_search_run


def test_the_tables_of_figures_stand_in_order(tmp_path: Path) -> None:
    world = RunSpec(folds=2, users=20, parts=(("age=1", ""),), metrics=("HR",))
    content = Content(read_run(make_run(tmp_path, world)))
    assert [table.title for table in content.tables] == [
        "Results",
        "HR@10 by group",
        "Each dataset, seed and fold",
    ]


def test_models_have_their_plug_in_and_parameters(tmp_path: Path) -> None:
    world = RunSpec(models=("mine",), names={"mine": "ItemKNN"})
    table = Content(read_run(make_run(tmp_path, world))).models
    assert [cell.text for cell in table.rows[0]] == ["mine", "ItemKNN", "neighbors 100"]


def test_settings_that_were_searched_are_named(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(models=("SLIM",), users=20)))
    run.manifest["models"][0]["searched"] = ["l1_ratio", "alpha"]
    said = Content(run).models.rows[0][-1].text
    assert said == "neighbors 100; searched for: l1 ratio, alpha"


def test_figures_name_their_dataset_where_there_are_several(tmp_path: Path) -> None:
    content = Content(read_run(make_run(tmp_path, RunSpec(datasets=("x", "y"), users=20))))
    titles = [content.figure_title(*each) for each in content.gallery.overview]
    assert "Long tail of recommended items, y" in titles
    assert titles[-1] == "Do the metrics order the models alike?, y"


def test_the_reference_has_a_row_a_figure(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "table": ["children/a3"],
            "system": ["ItemKNN"],
            "metric": ["nDCG"],
            "published": [0.2993],
            "measured": [0.2939],
            "difference": [-0.0054],
            "within": [True],
        }
    )
    table = reference_table(frame, ["a remark"])
    assert table.title == "Beside children/a3"
    assert [cell.text for cell in table.rows[0]] == [
        *("ItemKNN", "nDCG", "0.2993", "0.2939", "-0.0054", "yes"),
    ]
    assert table.notes == ("a remark",)


def test_a_reference_without_a_match_says_so() -> None:
    table = reference_table(pd.DataFrame(columns=["table", "system"]), [])
    assert table.rows == ()
    assert "No model and metric" in table.notes[0]


def test_searches_come_with_their_figures(tmp_path: Path) -> None:
    (found,) = Content(write_search_run(tmp_path)).searches
    assert (found.search.title, len(found.figures)) == ("SLIM", 2)
