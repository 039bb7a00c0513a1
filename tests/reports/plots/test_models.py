from __future__ import annotations

from pathlib import Path

import pandas as pd

from recbias.core.measures import ROUNDS
from recbias.reports.agreement import build_agreement_tables
from recbias.reports.conclusions import split_conclusions
from recbias.reports.gallery import draw_gallery
from recbias.reports.llm import collect_searches
from recbias.reports.plots_models import (
    draw_scatter,
    draw_setting_curves,
)
from recbias.reports.plots_units import draw_round_curves
from recbias.reports.run import RunTables, read_run
from recbias.reports.svg import FileNames, Plot
from recbias.reports.tables import build_round_table
from reports.plots.svg_reading import (
    find_elements,
    read_marks,
    read_texts,
    read_tooltips,
)
from support.models.search_rows import write_search_run
from support.run_folders import SEVEN_MODELS, RunSpec, make_run
from support.swept_runs import read_swept_run


def draw(folder: Path, world: RunSpec | None = None) -> Plot:
    if world is not None:
        make_run(folder, world)
    return draw_scatter(read_run(folder), "ml-1m", name="s")


def test_better_models_stand_further_right_and_more_popular_ones_higher(tmp_path: Path) -> None:
    points = read_marks(draw(tmp_path, RunSpec(models=("Random", "MostPop", "PureSVD"))))
    assert points == sorted(points, key=lambda point: point[0])  # 0.01, 0.16, 0.31
    assert points == sorted(points, key=lambda point: -point[1])  # -0.6, -0.3, 0.0


def test_tau_equals_the_hand_calculation(tmp_path: Path) -> None:
    # b is a reversed; c ties its first two: of six pairs five agree, 5 / sqrt(6 * 5) = 0.913
    values = {"a": [1.0, 2, 3, 4], "b": [4.0, 3, 2, 1], "c": [1.0, 1, 2, 3]}
    make_run(tmp_path, RunSpec(models=SEVEN_MODELS[:4], metrics=tuple(values), users=5, items=20))
    frame = pd.read_csv(tmp_path / "metrics.csv", keep_default_na=False)
    for metric, column in values.items():
        frame.loc[frame["metric"] == metric, "value"] = column
    frame.to_csv(tmp_path / "metrics.csv", index=False)
    (table,) = build_agreement_tables(read_run(tmp_path))
    assert [[cell.text for cell in row[1:]] for row in table.rows] == [
        ["", "-1.00", "0.91"],
        ["-1.00", "", "-0.91"],
        ["0.91", "-0.91", ""],
    ]


def draw_of_setting_curves(run: RunTables, dataset: str = "ml-1m") -> list[Plot]:
    return list(draw_setting_curves(run, dataset, FileNames().free))


def test_each_metric_has_a_curve_for_each_value_of_the_other_settings(tmp_path: Path) -> None:
    run = read_swept_run(tmp_path)
    plots = draw_of_setting_curves(run)
    assert [plot.name for plot in plots] == [
        "ndcg-10-by-neighbors",
        "hr-10-by-neighbors",
        "mrr-10-by-neighbors",
        "log-popularity-difference-10-by-neighbors",
    ]
    assert [plot.name for _, plot in draw_gallery(run).overview if "neighbors" in plot.name] == [
        plot.name for plot in plots
    ]
    plot = plots[0]
    assert len(find_elements(plot, "polyline", "curve")) == 2
    assert {"llm.shrink=0", "llm.shrink=10", "nDCG@10", "Neighbors"} <= set(read_texts(plot))
    assert {"5", "20", "80"} <= set(read_texts(plot))
    assert plot.title == "nDCG@10 over neighbors of ItemKNN"


def test_settings_are_named_by_their_shares_the_largest_first(tmp_path: Path) -> None:
    run = write_search_run(tmp_path, importances={"b": 0.25, "a": 0.75})
    (search,) = collect_searches(run)
    assert search.importance.endswith(": a 0.75, b 0.25.")


ROUND_CURVES_MODELS = ("Random", "MostPop")


def make_rounds(n_rounds: int, *, group: str = "") -> pd.DataFrame:
    """nDCG from 0.1 (Random) and 0.2, 0.1 more a round, of two seeds that differ by 0.02."""
    rows = [
        {
            "dataset": "ml-1m",
            "model": model,
            "seed": seed,
            "fold": 1,
            "round": number,
            "interactions": 100 * number,
            "metric": "nDCG",
            "k": 10,
            "group": group,
            "value": 0.1 * (at + number) + 0.02 * (seed - 1),
        }
        for at, model in enumerate(ROUND_CURVES_MODELS)
        for seed in (1, 2)
        for number in range(1, n_rounds + 1)
    ]
    return pd.DataFrame(rows, columns=list(ROUNDS.names))


def make_tables(folder: Path, rounds: pd.DataFrame | None) -> RunTables:
    made = make_run(folder, RunSpec(models=ROUND_CURVES_MODELS))
    if rounds is not None:
        rounds.to_csv(made / "rounds.csv", index=False)
    return read_run(made)


def draw_of_round_curves(run: RunTables, dataset: str = "ml-1m") -> list[Plot]:
    return list(draw_round_curves(run, dataset, FileNames().free))


def test_each_metric_has_a_plot_with_a_curve_for_each_model(tmp_path: Path) -> None:
    (plot,) = draw_of_round_curves(make_tables(tmp_path, make_rounds(3)))
    assert plot.name == "rounds-ndcg-10"
    curves = find_elements(plot, "polyline", "curve")
    assert [len(curve.get("points", "").split()) for curve in curves] == [3, 3]
    # the mean of both seeds: 0.1 + 0.01 in round 1 of Random
    assert "Random, round 1: 0.1100" in read_tooltips(plot)[1]


def test_the_table_has_a_column_for_each_round_and_a_row_for_each_model(tmp_path: Path) -> None:
    table = build_round_table(make_tables(tmp_path, make_rounds(3)))
    assert table is not None
    assert [column.title for column in table.columns] == [
        *("metric", "model", "round 1", "round 2", "round 3")
    ]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["nDCG", "Random", "0.1100", "0.2100", "0.3100"],
        ["nDCG", "MostPop", "0.2100", "0.3100", "0.4100"],
    ]
    assert table.notes[-1] == "The values are means over seeds and folds."


def test_conclusions_begin_with_the_change_of_each_value(tmp_path: Path) -> None:
    rounds = make_rounds(3)
    rounds.loc[(rounds["model"] == "MostPop") & (rounds["round"] == 3), "value"] -= 0.5
    first, _ = split_conclusions(make_tables(tmp_path, rounds))
    # MostPop: 0.21 and 0.41 - 0.5 = -0.09, a change of 0.3; Random: 0.11 and 0.31
    assert first[0].kind == "rounds"
    assert first[0].sentence == (
        "nDCG from round 1 to round 3: MostPop 0.2100 to -0.0900 and Random 0.1100 to 0.3100."
    )
