"""Specs that debias a model of which the gap is known: searches, seeds, curves, and faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.evidence import Evidence, SentenceScores
from recbias.language.likelihood import score_sentences
from recbias.metrics.perplexity import PerplexityGap
from recbias.models.language_model import SentenceLanguageModel
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary
from support.worlds.texts.sentence_worlds import (
    GROUPS,
    TARGETS,
    SentenceWorld,
    make_world,
    sample_copies,
)

PLANTED = {
    word: chance for pair in TARGETS for word, chance in zip(pair, (0.02, 0.08), strict=True)
}
GAP = {"name": "perplexity_gap", "a": "female", "b": "male", "scale": "log"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SentenceWorld:
    return make_world(tmp_path_factory.mktemp("planted"), PLANTED)


def make_spec(world: SentenceWorld, folder: Path, **model: Any) -> dict[str, Any]:
    before = {"name": "language_model", "model": str(world.model)}
    after = {"terms": str(world.terms), "label": "after", "batch_size": 40, "epochs": 1, **model}
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
    assert (run.folder / "figures" / "learning-curve-bias.svg").is_file()
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
    assert set(within["family_size"]) == {2}  # each test with and without outliers


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


def test_a_model_without_a_gap_is_flagged_in_five_percent_of_worlds(tmp_path: Path) -> None:
    """Words of two pairs are rarer, those of the others more frequent, by the same ratio."""
    n_worlds, n_pairs = 500, 40
    chances = {
        word: chance
        for number, pair in enumerate(TARGETS)
        for word, chance in zip(pair, ((0.02, 0.08), (0.08, 0.02))[number % 2], strict=True)
    }
    world = make_world(tmp_path, chances)
    fitted = SentenceLanguageModel(model=str(world.model), device="cpu").fit(
        world.data, np.random.default_rng(0)
    )
    copies = sample_copies(n_worlds * n_pairs, np.random.default_rng(5))
    texts = sorted({text for pair in copies for text in pair})
    scores = score_sentences(fitted.model, texts, fitted.settings.scoring)
    perplexity = dict(zip(texts, scores.perplexity, strict=True))
    metric = PerplexityGap(a="female", b="male", scale="log")
    n_flagged = sum(
        measure_p(metric, copies[start : start + n_pairs], perplexity) < 0.05
        for start in range(0, len(copies), n_pairs)
    )
    assert n_flagged / n_worlds == pytest.approx(0.05, abs=0.015)


def measure_p(
    metric: PerplexityGap, copies: list[tuple[str, str]], perplexity: dict[str, float]
) -> float:
    ids = np.arange(2 * len(copies)).astype(str).astype(object)
    scores = SentenceScores(
        ids,
        np.repeat(np.arange(len(copies)).astype(str).astype(object), 2),
        np.tile(np.array(GROUPS, dtype=object), len(copies)),
        np.array([perplexity[text] for pair in copies for text in pair]),
    )
    queries, items = make_user_queries(0), make_vocabulary("i", 0)
    evidence = Evidence(queries, items, sentence_scores=scores, metric="gap")
    return metric.measure(evidence)[0].contrasts[0].p
