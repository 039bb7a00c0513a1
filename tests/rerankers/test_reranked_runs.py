"""``rerank:`` in specs: the plain model beside its versions, from the spec to the report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit

import recbias
from recbias.core.dataset import Vocabulary
from recbias.reports.conclusions import collect_conclusions, split_conclusions
from recbias.reports.run import read_run
from support.commands import invoke_recbias
from support.specs import make_small_spec

RERANK = [
    {"name": "calibration", "attribute": "genres", "strength": [0, 0.9], "candidates": 20},
    {"name": "xQuAD", "candidates": 20},
]
NAMES = [
    "ItemKNN",
    "ItemKNN + calibration(strength=0)",
    "ItemKNN + calibration(strength=0.9)",
    "ItemKNN + xQuAD",
]


def run_spec(folder: Path, **changes: Any) -> recbias.Run:
    return recbias.run(make_small_spec(**changes), out=folder / "results", progress=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    models = ["MostPop", {"name": "ItemKNN", "rerank": RERANK}]
    return run_spec(
        tmp_path_factory.mktemp("run"),
        models=models,
        metrics=["nDCG", "ARP", "APLT", "Gini"],
        report={"formats": ["csv", "md"]},
    )


def get_items(run: recbias.Run, model: str) -> pd.DataFrame:
    lists = run.lists[run.lists["model"] == model]
    return lists.pivot_table(index="query_id", columns="rank", values="item_id", aggfunc="first")


def test_versions_stand_beside_the_plain_model(run: recbias.Run) -> None:
    assert list(dict.fromkeys(run.metrics["model"])) == ["MostPop", *NAMES]
    plain, same = (get_items(run, name) for name in NAMES[:2])
    pd.testing.assert_frame_equal(plain, same)
    assert not plain.equals(get_items(run, NAMES[2]))
    pairs = run.significance[run.significance["metric"] == "nDCG"]
    assert len(pairs[(pairs["a"] == NAMES[0]) & pairs["b"].isin(NAMES[1:])]) == 3


def test_the_model_is_trained_once_and_asked_once_for_candidates(run: recbias.Run) -> None:
    titles = [stage["stage"] for stage in run.manifest["stages"]]
    assert titles.count("fit ItemKNN") == 1
    assert titles.count("recommend ItemKNN, 20 candidates") == 1
    assert len([title for title in titles if title.startswith("re-rank")]) == 3


def test_tradeoffs_are_differences_by_user(run: recbias.Run) -> None:
    table = pd.read_csv(run.folder / "tradeoffs.csv")
    assert list(dict.fromkeys(table["model"])) == NAMES[1:]
    assert set(table["bias"]) == {"ARP@5", "APLT@5", "Gini@5"}
    row = table[(table["model"] == NAMES[3]) & (table["bias"] == "ARP@5")].iloc[0]
    values = run.per_unit.pivot_table(index="unit_id", columns=["metric", "model"], values="value")
    lost = values["nDCG"][NAMES[0]] - values["nDCG"][NAMES[3]]
    removed = values["ARP"][NAMES[0]] - values["ARP"][NAMES[3]]
    both = (lost + removed).notna()
    assert row["n"] == both.sum()
    assert row["accuracy_lost"] == pytest.approx(lost[both].mean())
    assert row["bias_removed"] == pytest.approx(removed[both].mean())
    for column, metric, name in (
        *(("accuracy_before", "nDCG", NAMES[0]), ("accuracy_after", "nDCG", NAMES[3])),
        *(("bias_before", "ARP", NAMES[0]), ("bias_after", "ARP", NAMES[3])),
    ):
        assert row[column] == pytest.approx(values[metric][name][both].mean())
    if row["bias_removed"] > 0:
        assert row["price"] == pytest.approx(lost[both].mean() / removed[both].mean())
    plain = table[table["model"] == NAMES[1]]
    assert (plain[["accuracy_lost", "bias_removed"]] == 0).all(axis=None)
    assert plain["price"].isna().all()  # no bias is removed
    gini = table[(table["bias"] == "Gini@5") & (table["model"] == NAMES[2])].iloc[0]
    replicates = pd.read_parquet(run.folder / "replicates.parquet")
    samples = replicates[replicates["metric"] == "Gini"]
    units = run.per_unit[(run.per_unit["metric"] == "nDCG") & (run.per_unit["model"] == NAMES[0])]
    queries = Vocabulary(units["unit_id"].to_numpy(dtype=object))
    assert set(samples["queries"]) == {queries.digest}  # accuracy is resampled by these
    before, after = (
        samples[samples["model"] == name]["value"].to_numpy() for name in (NAMES[0], NAMES[2])
    )
    half_width = (gini["bias_removed_high"] - gini["bias_removed_low"]) / 2
    quantile = float(stdtrit(len(units) - 1, 0.975))
    assert half_width == pytest.approx(quantile * np.std(before - after, ddof=1), rel=1e-4)
    if gini["bias_removed_low"] > 0:
        assert gini["price_low"] < gini["price"] < gini["price_high"]


def test_conclusions_state_what_is_removed_and_what_it_costs(run: recbias.Run) -> None:
    tables = read_run(run.folder)
    reranking = [item for item in collect_conclusions(tables) if item.kind == "reranking"]
    assert {item.metric for item in reranking} == {"ARP@5", "APLT@5", "Gini@5"}
    assert reranking[0] in split_conclusions(tables)[0]
    table = pd.read_csv(run.folder / "tradeoffs.csv")
    for item in reranking:
        rows = table[table["bias"] == item.metric]
        strongest = rows[rows["model"].isin(NAMES[1:3])].sort_values("bias_removed").iloc[-1]
        versions = {"calibration": strongest, "xQuAD": rows[rows["model"] == NAMES[3]].iloc[0]}
        order = sorted(versions, key=lambda name: -versions[name]["bias_removed"])
        texts = f"{item.sentence} {item.detail}".split(" nDCG.")[:2]
        for name, text in zip(order, texts, strict=True):
            row = versions[name]
            assert text.strip().startswith(f"{name} (strength {row['strength']:g}) of ItemKNN ")
            numbers = [abs(float(number)) for number in re.findall(r"-?\d+\.\d{4,}", text)]
            is_shown = row["bias_removed_low"] > 0 or row["bias_removed_high"] < 0
            names = ["bias_removed", "accuracy_lost"][not is_shown :]
            for value in (abs(row[f"{n}{end}"]) for n in names for end in ("", "_low", "_high")):
                assert min(abs(value - number) for number in numbers) <= 5e-5


def test_strength_is_searched_on_validation_users(tmp_path: Path) -> None:
    tune = {"metric": "ARP", "trials": 4, "space": {"strength": {"choice": [0.0, 1.0]}}}
    reranker = {"name": "calibrated_popularity", "candidates": 20, "tune": tune}
    run = run_spec(
        tmp_path,
        split={"name": "random", "test": 0.2, "validation": 0.2},
        models=[{"name": "ItemKNN", "rerank": reranker}],
        metrics=["nDCG", "ARP"],
    )
    trials = pd.read_csv(run.folder / "trials.csv")
    assert set(trials["model"]) == {"ItemKNN + calibrated_popularity"}
    assert len(trials) == 2  # every combination once
    titles = [stage["stage"] for stage in run.manifest["stages"]]
    assert titles.count("fit ItemKNN") == 1
    assert titles.count("recommend ItemKNN, 20 candidates of the validation users") == 1
    best = trials.sort_values("value").iloc[0]["settings"]
    assert run.manifest["searches"][0]["settings"] == eval(best)


@pytest.mark.parametrize(
    ("rerank", "message", "remedy"),
    [
        (
            "calibraton",
            "no re-ranker is called 'calibraton'",
            "did you mean calibration or calibrated_popularity?",
        ),
        ("{name: calibration}", "calibration needs attribute", "add attribute"),
        ("{name: calibration, attribute: genre}", "no column 'genre'", "did you mean genres?"),
        ("{name: MMR, attribute: genres, strength: 2}", "from 0 to 1, found 2", ""),
        ("{name: MMR, attribute: genres, strength: [0, 0.0]}", "has a value twice", "once"),
        ("{attribute: price_level, target: catalogue}", "has no name", "write name: calibration"),
        ("{name: xQuAD, candidates: 3}", "3 candidates are fewer than k", "set candidates: 100"),
        ("{name: DetGreedy, attribute: genres}", "values of 'genres'", "one value per item"),
        (
            "{name: DetGreedy, attribute: price_level, target: {'1': 0.8, '2': 0.4}}",
            "the shares add up to 1.2",
            "give shares that add up to 1",
        ),
        ("{name: FA*IR, attribute: genres, protected: Noir}", "no item has the value", ""),
    ],
)
def test_bad_input_is_an_error_of_the_plan(
    tmp_path: Path, rerank: str, message: str, remedy: str
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "name: bad\ndataset: {name: demo, n_users: 60, n_items: 50}\nsplit: random\nk: 5\n"
        f"models:\n  - {{name: MostPop, rerank: {rerank}}}\nmetrics: [nDCG]\n",
        encoding="utf-8",
    )
    result = invoke_recbias("plan", spec, folder=tmp_path)
    assert result.code == 2, result.out + result.err
    assert "models[0].rerank" in result.err
    assert message in result.err
    assert remedy in " ".join(result.err.split())
