"""A transformer that learned a gap, or none: what is measured, and what CTDA leaves of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import recbias
from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray, make_sentence_queries
from recbias.core.errors import Contradiction, OutOfRange
from recbias.language.local_models import LocalModel, ScoringSettings, tokenize_sentences
from recbias.language.terms import TermPairs
from recbias.models.debias import Debias, SentenceTraining, create_bias_loss, find_bias_subspace
from recbias.models.language_model import FittedLanguageModel, SentenceLanguageModel
from support.models.small_causal import make_network, make_tokenizer
from support.models.small_sentence_models import write_sentence_model
from support.worlds.texts.planted_gaps import compute_gap, make_planted_world
from support.worlds.texts.sentence_worlds import TARGETS, SentenceWorld, make_world

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


def draw(*shape: int, seed: int = 0) -> Any:
    """Return random numbers whose gradients are checked."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def test_the_subspace_explains_half_of_the_variance_with_the_fewest_directions() -> None:
    # squared lengths of half the differences: 4, 3 and 2 of 9 - two directions are needed
    differences = torch.diag(torch.tensor([4.0, 2 * 3**0.5, 2 * 2**0.5]))
    basis = find_bias_subspace(differences, torch.zeros(3, 3))
    assert torch.allclose(basis.abs(), torch.eye(3)[:2], atol=1e-6)
    assert (
        len(find_bias_subspace(torch.diag(torch.tensor([2.0, 1.0, 1.0])), torch.zeros(3, 3))) == 1
    )


PAIRS = TermPairs(
    "gender",
    ("female", "male"),
    (("aunt", "uncle"), ("sister", "brother"), ("niece", "uncle"), ("grandaunt", "granduncle")),
    (("timid", "bold"), ("quiet", None)),
)


TEXTS = (
    "one quiet aunt met her grandaunt and an uncle",  # the longest term counts at a place
    "a timid, quiet brother",
    "aunt of a timid sister",  # nothing predicts a term at the start
    "rain on boats",
    "the niece is quiet and timid and quiet again",
)


@dataclass(frozen=True)
class Reading:
    """What the network says of a sentence: ``logits[w, v]`` and last hidden states ``[w, d]``."""

    text: str
    logits: FloatArray
    states: FloatArray

    def find(self, terms: list[str]) -> Iterator[tuple[int, str]]:
        """Yield the place and the name of terms, from the left, the longest first."""
        at = 0
        while at < len(self.text):
            found = [term for term in terms if self.text.startswith(term, at)]
            if found:
                yield at, max(found, key=len)
            at += len(max(found, key=len)) if found else 1


@pytest.fixture(scope="module")
def model() -> LocalModel:
    network = make_network("gpt2", tie_word_embeddings=False).double()
    return LocalModel("causal", make_tokenizer(), network)


@pytest.fixture(scope="module")
def readings(model: LocalModel) -> list[Reading]:
    made = []
    for text in TEXTS:
        ids = torch.tensor([tokenize(model, text)])
        with torch.no_grad():
            output = model.network(ids, output_hidden_states=True)
        made.append(Reading(text, output.logits[0].numpy(), output.hidden_states[-1][0].numpy()))
    return made


def tokenize(model: LocalModel, text: str) -> list[int]:
    tokens: list[int] = model.tokenizer(text, add_special_tokens=False).input_ids
    assert len(tokens) == len(text)  # a token a character, so places in both are the same
    return tokens


def embed(model: LocalModel, term: str, *, is_input: bool) -> FloatArray:
    network: Any = model.network
    layer = network.get_input_embeddings() if is_input else network.get_output_embeddings()
    return np.mean(layer.weight.detach().numpy()[tokenize(model, term)], axis=0)  # type: ignore[no-any-return]


def cosine(first: FloatArray, second: FloatArray) -> float:
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


def find_basis(model: LocalModel, *, is_input: bool) -> FloatArray:
    """Return the components of pair differences that explain half, by their covariance."""
    halves = np.array(
        [
            (embed(model, a, is_input=is_input) - embed(model, b, is_input=is_input)) / 2
            for a, b in PAIRS.targets
        ]
    )
    values, vectors = np.linalg.eigh(halves.T @ halves)
    order = np.argsort(values)[::-1]
    k = int(np.argmax(np.cumsum(values[order]) >= values.sum() / 2)) + 1
    return vectors[:, order[:k]].T


ATTRIBUTES = [first for first, _ in PAIRS.attributes]


def compute_lmd(model: LocalModel, readings: list[Reading]) -> float:
    pair_of = {second: pair for pair in reversed(PAIRS.targets) for second in (pair[1],)}
    pair_of |= {pair[0]: pair for pair in PAIRS.targets}
    total = 0.0
    for reading in readings:
        for at, term in reading.find(list(pair_of)):
            if at:
                row = reading.logits[at - 1] - np.log(np.exp(reading.logits[at - 1]).sum())
                logs = [row[tokenize(model, side)].mean() for side in pair_of[term]]
                total += abs(logs[0] - logs[1]) / len(PAIRS.targets)
    return total / len(readings)


def compute_add(model: LocalModel, readings: list[Reading]) -> float:
    total = 0.0
    for reading in readings:
        for _, term in reading.find(ATTRIBUTES):
            a = embed(model, term, is_input=True)
            for pair in PAIRS.targets:
                first, second = (cosine(embed(model, t, is_input=True), a) for t in pair)
                total += abs(first - second)
    return total / len(readings)


def compute_hd(model: LocalModel, readings: list[Reading]) -> float:
    basis, total = find_basis(model, is_input=True), 0.0
    for reading in readings:
        for _, term in reading.find(ATTRIBUTES):
            a = embed(model, term, is_input=True)
            total += sum(float(np.linalg.norm(b * (a @ b))) for b in basis)
    return total / len(readings)


def compute_released_lmd(model: LocalModel, readings: list[Reading]) -> float:
    total = 0.0
    for reading in readings:
        for first, second in PAIRS.targets:
            if first in reading.text:
                e1, e2 = (embed(model, term, is_input=False) for term in (first, second))
                ratios = np.exp(reading.states @ e1) / np.exp(reading.states @ e2)
                total += float(np.abs(np.log(ratios)).sum()) / len(reading.text)
    return total / len(PAIRS.targets)


def compute_released_add(model: LocalModel, readings: list[Reading]) -> float:
    total = 0.0
    for reading in readings:
        for at, term in reading.find(ATTRIBUTES):
            h = reading.states[at : at + len(term)].mean(axis=0)
            for pair in PAIRS.targets:
                first, second = (cosine(embed(model, t, is_input=False), h) for t in pair)
                total += abs(first - second)
    return total


def compute_released_hd(model: LocalModel, readings: list[Reading]) -> float:
    basis = find_basis(model, is_input=False)
    running, total = np.zeros(basis.shape[1]), 0.0
    for reading in readings:
        for at, term in reading.find(ATTRIBUTES):
            h = reading.states[at : at + len(term)].mean(axis=0)
            running = running + sum((h @ b) * b for b in basis)
            total += float(np.abs(running).sum())
    return total


FORMULAS = {
    ("LMD", "paper"): compute_lmd,
    ("ADD", "paper"): compute_add,
    ("HD", "paper"): compute_hd,
    ("LMD", "released"): compute_released_lmd,
    ("ADD", "released"): compute_released_add,
    ("HD", "released"): compute_released_hd,
}


def make_task(model: LocalModel, debias: Debias) -> SentenceTraining:
    settings = ScoringSettings().complete(model)
    tokens = tokenize_sentences(model, TEXTS, settings)
    with collect_warnings():  # of sentences without a term
        bias = create_bias_loss(debias, model, TEXTS, tokens, settings, PAIRS)
    return SentenceTraining(model, tokens, settings, bias, debias)


def read_bias(task: SentenceTraining, rows: list[int]) -> tuple[float, float]:
    """Return the loss of a batch and its bias, not multiplied by the number of sentences."""
    with torch.no_grad():
        total = task.loss(np.array(rows))
    return float(total) / len(rows), float(task.read_parts()["bias"]) / len(rows)


@pytest.mark.parametrize(("method", "reading"), FORMULAS)
def test_the_loss_of_a_batch_is_that_of_the_formula(
    model: LocalModel, readings: list[Reading], method: Any, reading: Any
) -> None:
    task = make_task(model, Debias(method=method, reading=reading, weight=50))
    for rows in ([0, 1, 2, 3, 4], [4, 0], [2]):
        expected = FORMULAS[method, reading](model, [readings[row] for row in rows])
        total, bias = read_bias(task, rows)
        assert expected > 0.01
        assert bias == pytest.approx(expected, rel=1e-9)
        logs = [
            row.logits[at] - np.log(np.exp(row.logits[at]).sum())
            for row in (readings[number] for number in rows)
            for at in range(len(row.text) - 1)
        ]
        words = [token for number in rows for token in tokenize(model, TEXTS[number])[1:]]
        cross_entropy = -np.mean([log[word] for log, word in zip(logs, words, strict=True)])
        lm_weight = 1.0 if reading == "paper" else 0.001
        # the cross-entropy has single precision, as the logits of most networks have
        assert total == pytest.approx(lm_weight * cross_entropy + 50 * expected, rel=1e-6)


@pytest.mark.parametrize("method", ["LMD", "ADD", "HD"])
def test_a_batch_without_terms_has_the_plain_loss_of_the_release(
    model: LocalModel, method: Any
) -> None:
    ours, control = (
        read_bias(make_task(model, debias), [3])
        for debias in (
            Debias(method=method, reading="released", weight=50),
            Debias(method=method, weight=0),
        )
    )
    assert ours == pytest.approx(control)
    assert ours[1] == 0


RATIO = 4


def test_a_transformer_has_the_planted_gap_and_ctda_removes_it(tmp_path: Path) -> None:
    world = make_planted_world(tmp_path, RATIO)
    model: dict[str, Any] = {"name": "language_model", "model": str(world.model)}
    training = {"terms": str(world.terms), "epochs": 20, "batch_size": 48, "learning_rate": 0.01}
    spec = {
        "name": "planted",
        "device": "cpu",
        "dataset": world.write_tables(tmp_path),
        "queries": {"name": "sentences", "part": "test"},
        "models": [
            {**model, "label": "before"},
            {**model, "label": "CTDA", "debias": {"method": "CTDA"}, **training},
        ],
        "metrics": [GAP],
        "tests": ["paired_t"],
        "report": {"formats": ["md"]},
    }
    run = recbias.run(spec, out=tmp_path / "results")
    rows = run.metrics[run.metrics["target"] == ""].set_index("model")
    planted = compute_gap(RATIO)
    before, after = rows["value"]["before"], rows["value"]["CTDA"]
    assert before == pytest.approx(planted, rel=0.05)
    assert abs(after) < 0.05 * planted
    # the interval of the difference between the models holds the planted gap, up to that 5%
    compared = run.significance[run.significance["between"] == "models"]
    (difference,) = compared.loc[compared["target"].fillna("") == "", "difference"]
    assert abs(difference) == pytest.approx(planted, rel=0.1)
