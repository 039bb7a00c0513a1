from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.context import collect_warnings
from recbias.core.errors import Contradiction, OutOfRange
from recbias.core.queries import make_sentence_queries
from recbias.models.debias import Debias
from recbias.models.language_model import FittedLanguageModel, SentenceLanguageModel
from support.models.small_sentence_models import write_sentence_model
from support.worlds.texts.sentence_worlds import (
    TARGETS,
    SentenceWorld,
    make_world,
)

RARER = 4
"""How much rarer the words of the first group are: ln PPL differs by ln 4 / 5 scored words."""

PLANTED = {
    word: chance
    for pair in TARGETS
    for word, chance in zip(pair, (0.02, 0.02 * RARER), strict=True)
}
METHODS = ("LMD", "ADD", "HD", "CADA", "CTDA")


def create(world: SentenceWorld, method: str, **settings: Any) -> SentenceLanguageModel:
    names = {"weight", "reading", "lm_weight", "category"}
    given: dict[str, Any] = {key: settings.pop(key) for key in names & settings.keys()}
    debias = Debias(method=method, **given)  # type: ignore[arg-type]  # one of METHODS
    usual = {"learning_rate": 0.02, "epochs": 20}
    return SentenceLanguageModel(
        model=str(world.model),
        terms=world.terms,
        debias=debias,
        device="cpu",
        **(usual | settings),
    )


def fit(world: SentenceWorld, method: str, **settings: Any) -> FittedLanguageModel:
    model = create(world, method, **settings)
    model.check_data(world.data)
    with collect_warnings():  # sentences without a term
        return model.fit(world.data, np.random.default_rng(0))


def measure_gap(world: SentenceWorld, fitted: FittedLanguageModel) -> float:
    """Return the mean difference of ln PPL on the test pairs."""
    scores = fitted.sentence_scores(make_sentence_queries(world.sentences, "test"))
    logs = np.log(scores.perplexity)
    return float(logs[scores.groups == "female"].mean() - logs[scores.groups == "male"].mean())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SentenceWorld:
    return make_world(tmp_path_factory.mktemp("planted"), PLANTED)


@pytest.fixture(scope="module")
def before(world: SentenceWorld) -> float:
    model = SentenceLanguageModel(model=str(world.model), device="cpu")
    return measure_gap(world, model.fit(world.data, np.random.default_rng(0)))


def test_a_planted_gap_is_measured_exactly(before: float) -> None:
    assert before == pytest.approx(math.log(RARER) / 5, rel=1e-5)


def test_ctda_removes_the_planted_gap(world: SentenceWorld, before: float) -> None:
    fitted = fit(world, "CTDA", batch_size=80, epochs=60, learning_rate=0.05)
    assert abs(measure_gap(world, fitted)) < 0.1 * before


@pytest.mark.parametrize("reading", ["paper", "released"])
@pytest.mark.parametrize("method", METHODS)
def test_losses_fall_and_are_recorded(world: SentenceWorld, method: str, reading: str) -> None:
    fitted = fit(world, method, reading=reading, learning_rate=0.02, epochs=10, accumulate=2)
    curve = fitted.learning_curve()
    assert curve is not None
    names = ["language_model"] + ["bias"] * (method in {"LMD", "ADD", "HD"})
    n_sentences = {"CTDA": 80, "CADA": 80 if reading == "released" else 40 + count_copies(world)}
    n_steps = 10 * math.ceil(n_sentences.get(method, 40) / 16)  # batches of 8, two a step
    assert curve["loss"].tolist() == names * n_steps
    assert curve["epoch"].is_monotonic_increasing
    assert curve["epoch"].iloc[-1] == 10
    assert curve["step"].tolist() == np.repeat(np.arange(1, n_steps + 1), len(names)).tolist()
    values = curve[curve["loss"] == names[-1]]["value"].to_numpy()
    assert values[-3:].mean() < 0.95 * values[:3].mean()


def count_copies(world: SentenceWorld) -> int:
    texts = world.sentences.take_part("train").texts
    return sum("idle" not in text for text in texts)


def test_a_model_that_becomes_worse_than_chance_has_diverged(world: SentenceWorld) -> None:
    with pytest.raises(OutOfRange, match="language_model with CTDA diverged") as caught:
        fit(world, "CTDA", learning_rate=100.0)
    assert caught.value.where == "learning_rate"


def test_a_masked_model_is_refused(world: SentenceWorld, tmp_path: Path) -> None:
    folder = write_sentence_model(tmp_path, "bert")
    model = SentenceLanguageModel(
        model=str(folder), terms=world.terms, debias=Debias(method="CTDA"), device="cpu"
    )
    with pytest.raises(Contradiction, match="masked model cannot be debiased"):
        model.check_data(world.data)


def test_faults_of_settings_are_refused(world: SentenceWorld) -> None:
    with pytest.raises(Contradiction, match="CTDA has no bias loss"):
        Debias(method="CTDA", weight=10)
    with pytest.raises(Contradiction, match="has the weight 1"):
        Debias(method="LMD", lm_weight=0.01)
    with pytest.raises(Contradiction, match="vanish in bfloat16"):
        create(world, "LMD", precision="bfloat16")
    assert Debias(method="HD", reading="released", lm_weight=0.01).weights == (0.01, 10.0)


GAP = {"name": "perplexity_gap", "a": "female", "b": "male", "scale": "log"}


def make_spec(world: SentenceWorld, folder: Path, **model: Any) -> dict[str, Any]:
    before = {"name": "language_model", "model": str(world.model)}
    after = {
        "terms": str(world.terms),
        "label": "after",
        "batch_size": 40,
        "epochs": 1,
        **model,
    }
    return {
        "name": "debiased",
        "device": "cpu",
        "dataset": world.write_tables(folder),
        "queries": {"name": "sentences", "part": "test"},
        "models": [{**before, "label": "before"}, {**before, **after}],
        "metrics": [GAP, {**GAP, "label": "t", "estimate": "t"}],
        "tests": ["paired_t"],
        "report": {"formats": ["md"]},
    }


def search(metric: Any = None, **settings: Any) -> dict[str, Any]:
    return {
        "metric": metric or GAP,
        "trials": 2,
        "space": {"learning_rate": {"choice": [0.5, 0.3]}},
        **settings,
    }


def test_seeds_have_curves_and_a_spread_of_t(world: SentenceWorld, tmp_path: Path) -> None:
    spec = make_spec(world, tmp_path, debias={"method": "LMD"}, epochs=3, learning_rate=0.05) | {
        "seeds": [1, 2]
    }
    run = recbias.run(spec, out=tmp_path / "results")
    curves = pd.read_csv(run.folder / "learning_curves.csv")
    columns = ["dataset", "model", "seed", "fold", "epoch", "step", "loss", "value"]
    assert curves.columns.tolist() == columns
    assert curves["model"].unique().tolist() == ["after"]
    assert curves.groupby(["seed", "loss"])["step"].apply(list).tolist() == [[1, 2, 3]] * 4
    assert not (run.folder / "responses.jsonl").exists()  # no query is a dialogue
    # pairs of both models are compared on their mean over seeds
    compared = run.significance[run.significance["between"] == "models"]
    assert {(1, 20), (2, 20), ("all", 20)} <= {
        (seed if seed == "all" else int(seed), n)
        for seed, n in zip(compared["seed"], compared["n"], strict=True)
    }
    t = run.metrics[
        (run.metrics["metric"] == "t")
        & (run.metrics["target"] == "")
        & (run.metrics["model"] == "after")
    ]
    by_seed = {str(row["seed"]): (row["value"], row["std"]) for row in t.to_dict("records")}
    groups = run.significance[
        (run.significance["between"] == "groups")
        & (run.significance["test"] == "paired_t")
        & (run.significance["target"].fillna("") == "")
        & (run.significance["model"] == "after")
    ]
    statistics = groups["statistic"].to_numpy()
    values = [by_seed[seed][0] for seed in ("1", "2")]
    assert values == pytest.approx(statistics[:2].tolist())
    assert by_seed["all"] == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    # the metric with ``estimate: t`` has the same tests, which stand in the table once
    within = run.significance[run.significance["between"] == "groups"]
    (label,) = within["metric"].unique()
    assert label != "t"
    within = within[within["p"].notna()]  # all pairs of the model before differ by the same amount
    assert set(within["family_size"]) == {4}  # with and without outliers, of both models


def test_a_search_excludes_settings_that_cost_perplexity(
    world: SentenceWorld, tmp_path: Path
) -> None:
    spec = make_spec(world, tmp_path, debias={"method": "CTDA"}, batch_size=80, tune=search())
    run = recbias.run(spec, out=tmp_path / "results")
    trials = pd.read_csv(run.folder / "trials.csv").sort_values("settings")
    # the rate of 0.5 increases the perplexity of the validation sentences by a quarter
    assert trials["state"].tolist() == ["done", "excluded"]
    report = (run.folder / "report.md").read_text(encoding="utf-8")
    assert "the perplexity of the validation sentences increases by 27%, more than 10%" in report


def test_a_search_in_which_all_settings_cost_perplexity_says_so(
    world: SentenceWorld, tmp_path: Path
) -> None:
    tune = search(max_perplexity_increase=0.0, space={"learning_rate": {"choice": [0.5]}})
    spec = make_spec(world, tmp_path, debias={"method": "CTDA"}, batch_size=80, tune=tune)
    run = recbias.run(spec, out=tmp_path / "results")
    messages = [failure["message"] for failure in run.manifest["failures"]]
    assert any("1 of 1 trials increase the perplexity too much" in text for text in messages)
