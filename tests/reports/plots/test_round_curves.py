from __future__ import annotations

from pathlib import Path

import pandas as pd

from recbias.core.measures import ROUNDS
from recbias.reports.conclusions import split_conclusions
from recbias.reports.plots_units import draw_round_curves
from recbias.reports.run import RunTables, read_run
from recbias.reports.svg import FileNames, Plot
from recbias.reports.tables import build_round_table
from reports.plots.svg_reading import find_elements, read_tooltips
from support.run_folders import RunSpec, make_run

MODELS = ("Random", "MostPop")


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
        for at, model in enumerate(MODELS)
        for seed in (1, 2)
        for number in range(1, n_rounds + 1)
    ]
    return pd.DataFrame(rows, columns=list(ROUNDS.names))


def make_tables(folder: Path, rounds: pd.DataFrame | None) -> RunTables:
    made = make_run(folder, RunSpec(models=MODELS))
    if rounds is not None:
        rounds.to_csv(made / "rounds.csv", index=False)
    return read_run(made)


def draw(run: RunTables, dataset: str = "ml-1m") -> list[Plot]:
    return list(draw_round_curves(run, dataset, FileNames().free))


def test_each_metric_has_a_plot_with_a_curve_for_each_model(tmp_path: Path) -> None:
    (plot,) = draw(make_tables(tmp_path, make_rounds(3)))
    assert plot.name == "rounds-ndcg-10"
    curves = find_elements(plot, "polyline", "curve")
    assert [len(curve.get("points", "").split()) for curve in curves] == [3, 3]
    # the mean of both seeds: 0.1 + 0.01 in round 1 of Random
    assert "Random, round 1: 0.110" in read_tooltips(plot)[2]


def test_the_table_has_a_column_for_each_round_and_a_row_for_each_model(tmp_path: Path) -> None:
    table = build_round_table(make_tables(tmp_path, make_rounds(3)))
    assert table is not None
    assert [column.title for column in table.columns] == [
        *("metric", "model", "round 1", "round 2", "round 3")
    ]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["nDCG@10", "Random", "0.1100", "0.2100", "0.3100"],
        ["nDCG@10", "MostPop", "0.2100", "0.3100", "0.4100"],
    ]
    assert table.notes[-1] == "The values are means over seeds and folds."


def test_conclusions_begin_with_the_change_of_each_value(tmp_path: Path) -> None:
    rounds = make_rounds(3)
    rounds.loc[(rounds["model"] == "MostPop") & (rounds["round"] == 3), "value"] -= 0.5
    first, _ = split_conclusions(make_tables(tmp_path, rounds))
    # MostPop: 0.21 and 0.41 - 0.5 = -0.09, a change of 0.3; Random: 0.11 and 0.31
    assert first[0].kind == "rounds"
    assert first[0].sentence == (
        "nDCG@10, from round 1 to round 3: MostPop 0.2100 to -0.0900, Random 0.1100 to 0.3100."
    )
