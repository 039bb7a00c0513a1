"""Lists that were made for another split are noticed, and values without an interval."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

import recbias
from recbias.config.specs import PluginSpec
from recbias.core.measures import Bounds, Measurement, UnitScores, limit_interval
from recbias.runner.results import ModelMeasurement, warn_about_equal_values

AUDIT = Path(__file__).parents[3] / "configs" / "audit"
SPEC = """\
name: mine
dataset: {name: tables, interactions: train.csv, items: items.csv}
split: {name: %s}
queries: {name: table, path: queries.csv}
k: 5
models:
  - MostPop
  - {name: lists, label: ours, path: ours.csv, seen: keep}
metrics: [%s, ItemCoverage]
"""


@pytest.mark.parametrize("metrics", ["nDCG, HR", "nDCG, {name: nDCG, by: gender}"])
@pytest.mark.parametrize(
    ("split", "is_warned"),
    [("given, train: train.csv, test: test.csv", False), ("random, test: 0.5", True)],
)
def test_given_lists_without_any_hit_ask_for_their_split(
    split: str, is_warned: bool, metrics: str, tmp_path: Path
) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(AUDIT, folder)
    text = SPEC % (split, metrics)
    if not is_warned:
        text = text.replace("interactions: train.csv, ", "")
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    run = recbias.run(folder / "mine.yaml", out=tmp_path / "results")
    text = " ".join(str(warning) for warning in run.manifest["warnings"])
    assert ("ours: every accuracy metric is exactly 0" in text) == is_warned
    assert "MostPop: every" not in text
    ours = run.metrics[
        (run.metrics["model"] == "ours") & (run.metrics["metric"] != "ItemCoverage")
    ]
    assert (ours["value"].dropna() == 0).all() == is_warned
    scores = ours[ours["metric"] == "nDCG"].dropna(subset="value")
    if is_warned:  # equal values: 1 - 0.025^(1/n)
        assert scores["ci_high"].tolist() == pytest.approx(1 - 0.025 ** (1 / scores["n"]))


def make_row(label: str, values: list[float], bounds: Bounds) -> ModelMeasurement:
    ids = np.arange(len(values)).astype(str).astype(object)
    measured = Measurement.from_units(UnitScores("query", ids, np.array(values)))
    metric = PluginSpec("metrics", label, label, None, {}, ())
    limited = limit_interval(measured, bounds)
    return ModelMeasurement("d", "m", 1, 1, metric, limited, bounds=bounds)


def test_equal_values_of_a_metric_without_bounds_are_counted() -> None:
    equal, unbounded = [2.0, 2.0, 2.0], (0.0, math.inf)
    rows = [make_row("ARP", equal, unbounded)] * 2 + [make_row("depth", equal, unbounded)]
    expected = r"^3 values have no interval \(ARP, depth\): all units have one value, and the"
    with pytest.warns(UserWarning, match=expected):
        warn_about_equal_values(rows)


def test_values_with_an_interval_are_not_counted(recwarn: pytest.WarningsRecorder) -> None:
    rows = [
        make_row("nDCG", [1.0, 1.0], (0.0, 1.0)),
        make_row("ARP", [1.0, 2.0], (0.0, math.inf)),
        make_row("ARP", [1.0], (0.0, math.inf)),
    ]
    warn_about_equal_values(rows)
    assert not recwarn.list


def test_values_that_no_sample_of_the_queries_changes_are_counted(tmp_path: Path) -> None:
    lists = [f"{user},{item},{rank}" for user in "abcd" for rank, item in enumerate("xy", 1)]
    rows = [f"{user},{item}" for user in "abcd" for item in "uvw"] + ["a,x", "b,y"]
    for name, lines in (
        ("lists.csv", ["query_id,item_id,rank", *lists]),
        ("rows.csv", ["user_id,item_id", *rows]),
    ):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    spec = {
        "name": "equal",
        "dataset": {"name": "tables", "interactions": str(tmp_path / "rows.csv")},
        "models": [
            {"name": "lists", "label": label, "path": str(tmp_path / "lists.csv"), "seen": "keep"}
            for label in "ab"
        ],
        "k": 2,
        "metrics": ["ItemCoverage", "Gini"],
        "tests": ["paired_t"],
    }
    run = recbias.run(spec, out=tmp_path / "results")
    assert run.metrics["ci_low"].isna().all()
    assert run.significance["p"].tolist() == [1, 1]
    text = " ".join(str(warning) for warning in run.manifest["warnings"])
    assert "4 values have no interval (ItemCoverage, Gini): all bootstrap samples" in text
