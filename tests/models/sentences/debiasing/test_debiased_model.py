"""Debiasing of a model whose probabilities, and so its gap, are known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import Contradiction, OutOfRange
from recbias.core.queries import make_sentence_queries
from recbias.models.debias import Debias
from recbias.models.language_model import FittedLanguageModel, SentenceLanguageModel
from support.models.small_sentence_models import write_sentence_model
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


def test_lmd_removes_the_planted_gap(world: SentenceWorld, before: float) -> None:
    control = measure_gap(world, fit(world, "LMD", weight=0))
    after = measure_gap(world, fit(world, "LMD", weight=50))
    # without the bias loss the model learns sentences about one group, and their words
    assert control < -before
    assert abs(after) < 0.2 * before


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


def test_a_stored_model_gives_the_same_scores(world: SentenceWorld) -> None:
    fitted = fit(world, "HD", epochs=1)
    again = create(world, "HD", epochs=1).restore(fitted.state())
    queries = make_sentence_queries(world.sentences, "test")
    expected = fitted.sentence_scores(queries).perplexity
    np.testing.assert_array_equal(again.sentence_scores(queries).perplexity, expected)
    first, second = fitted.learning_curve(), again.learning_curve()
    assert first is not None
    assert second is not None
    assert first.equals(second)


def test_accumulation_multiplies_the_batch(world: SentenceWorld) -> None:
    def train(**settings: int) -> Any:
        fitted = fit(world, "LMD", epochs=3, learning_rate=0.001, **settings)
        assert fitted.curve is not None
        return fitted.curve.values

    whole, parts = train(batch_size=40), train(batch_size=10, accumulate=4)
    assert len(whole) == len(parts) == 3
    np.testing.assert_allclose(parts, whole, rtol=1e-5)  # sentences are of equal length


def test_a_model_that_becomes_worse_than_chance_has_diverged(world: SentenceWorld) -> None:
    with pytest.raises(OutOfRange, match="language_model with CTDA diverged") as caught:
        fit(world, "CTDA", learning_rate=100.0)
    assert caught.value.where == "learning_rate"


def test_an_encoder_decoder_can_be_debiased(world: SentenceWorld, tmp_path: Path) -> None:
    folder = write_sentence_model(tmp_path, "t5")
    model = SentenceLanguageModel(
        model=str(folder), terms=world.terms, debias=Debias(method="LMD"), epochs=1, device="cpu"
    )
    fitted = model.fit(world.data, np.random.default_rng(0))
    assert fitted.curve is not None
    assert np.isfinite(fitted.curve.values).all()


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
