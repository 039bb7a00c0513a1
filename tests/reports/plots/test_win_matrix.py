from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd

from recbias.reports.plots.win_matrix import by_mean, matrix
from recbias.reports.views.comparisons import comparisons
from recbias.reports.views.run_tables import RunTables, read_run
from support.run_folders import HOSTILE, NINETEEN, World, make_run


def drawn(run: RunTables) -> ET.Element:
    return ET.fromstring(matrix(comparisons(run)[0], name="m").document())


def squares(root: ET.Element) -> list[str]:
    found = [each for each in root.findall("{*}rect") if each.find("{*}title") is not None]
    return [each.get("class", "") for each in found]


def three(folder: Path, metric: str) -> RunTables:
    """A run of three: z - x is significant, y lies between them and differs from neither."""
    make_run(folder, World(models=("x", "y", "z"), metrics=(metric,)))
    path = folder / "significance.csv"
    means = {"x": 0.1, "y": 0.2, "z": 0.3}
    frame = pd.read_csv(path)
    frame["mean_a"], frame["mean_b"] = frame["a"].map(means), frame["b"].map(means)
    frame["difference"] = frame["mean_a"] - frame["mean_b"]
    frame["effect_size"] = frame["difference"]
    frame["significant"] = (frame["a"] + frame["b"]) == "xz"
    frame.to_csv(path, index=False)
    return read_run(folder)


def test_the_best_model_comes_first_and_wins_are_marked(tmp_path: Path) -> None:
    run = three(tmp_path, "HR")
    assert by_mean(comparisons(run)[0]) == ["z", "y", "x"]
    # row z: y, x; row y: z, x; row x: z, y
    assert squares(drawn(run)) == [
        *("maybe-better", "better", "maybe-worse", "maybe-better", "worse", "maybe-worse"),
    ]


def test_lower_is_better_turns_it_round(tmp_path: Path) -> None:
    run = three(tmp_path, "ARP")
    assert by_mean(comparisons(run)[0]) == ["x", "y", "z"]
    assert squares(drawn(run))[1] == "better"


def test_without_a_direction_higher_and_lower_are_said(tmp_path: Path) -> None:
    run = three(tmp_path, "Gini")
    text = "".join(drawn(run).itertext())
    assert "significantly higher" in text
    assert "better" not in text.partition("}")[2].rpartition("}")[2]


def test_the_tooltip_has_difference_and_p(tmp_path: Path) -> None:
    root = drawn(three(tmp_path, "HR"))
    said = next(each.findtext("{*}title") or "" for each in root.findall("{*}rect[@rx]"))
    assert said.startswith("z 0.3000, y 0.2000: difference 0.1000 (95% interval ")
    assert "corrected p" in said
    assert said.endswith("not significant")


def test_every_pair_of_many_models_is_there(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, World(models=NINETEEN, metrics=("HR",), lists=False)))
    assert len(squares(drawn(run))) == 19 * 18


def test_hostile_labels_are_text(tmp_path: Path) -> None:
    root = drawn(read_run(make_run(tmp_path, World(models=HOSTILE))))
    assert not root.findall(".//{*}script")
