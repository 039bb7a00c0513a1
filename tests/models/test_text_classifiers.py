from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from recbias.core.context import collect_warnings
from recbias.core.dataset import AnyArray, Ids, Queries, Reviews, TrainingData
from recbias.core.errors import NothingLeft
from recbias.core.evidence import RankedLists
from recbias.models.text import Blocks, ItemClasses, Pooling, recommend_by_reviews, tokenize_texts
from recbias.models.text_classifiers import TFIDFLR, EncoderLR, LMRec, SoftmaxRegression, fit_probe
from recbias.testing import check_recommender
from support.models.recommending import make_checkerboard, query_all_users
from support.models.small_encoder import write_small_encoder
from support.worlds.dishes import make_prompts, make_review_data, make_texts
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

RNG = np.random.default_rng(0)


def test_log_probabilities_equal_those_of_a_scikit_learn_pipeline() -> None:
    data = make_review_data()
    pipeline = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True),
        LogisticRegression(C=10.0, max_iter=1000),
    )
    pipeline.fit(data.reviews.texts, data.reviews.items)
    texts = make_texts("tea and soup", "good bread", "unheard", "")
    lists = TFIDFLR(iterations=1000).fit(data, RNG).recommend(make_prompts(*texts), 3, data)
    expected = pipeline.predict_log_proba(texts)
    order = np.argsort(-expected, axis=1)
    assert (pipeline.classes_[order][:2] == lists.items[:2]).all()
    np.testing.assert_allclose(lists.scores, np.take_along_axis(expected, order, 1), atol=5e-3)


@pytest.mark.parametrize("min_df", [2, 200])
def test_a_vocabulary_without_frequent_words_is_an_error(min_df: int) -> None:
    data = make_review_data(12)
    assert data.reviews is not None
    empty = replace(data.reviews, texts=make_texts(*[f"w{number}" for number in range(12)]))
    with pytest.raises(NothingLeft, match=f"no word occurs in {min_df} of the 12") as caught:
        TFIDFLR(min_df=min_df).fit(replace(data, reviews=empty), RNG)
    assert caught.value.remedy == "lower min_df"


ENCODER_LR_RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> EncoderLR:
    folder = write_small_encoder(tmp_path_factory.mktemp("encoder"))
    return EncoderLR(encoder=str(folder), C=10.0, max_length=16, device="cpu")


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_log_probabilities_equal_a_regression_on_standardized_states(
    model: EncoderLR, pooling: Pooling
) -> None:
    # by the definition: states of the training reviews, z-scores, scikit-learn's regression
    from sklearn.linear_model import LogisticRegression

    data = make_review_data()
    chosen = replace(model, pooling=pooling, C=0.5, iterations=1000)
    network = chosen.create_network(3)
    texts = make_texts(*data.reviews.texts, "soup and tea", "")
    tokens = tokenize_texts(texts, network.tokenizer, 16)
    encoded = network.states(tokens, np.arange(len(texts))).detach().numpy()
    states = encoded.astype(np.float64)
    train = states[:-2]
    peer = LogisticRegression(C=0.5, max_iter=1000)
    peer.fit((train - train.mean(0)) / train.std(0), data.reviews.items)
    level = (states[-2:] - train.mean(0)) / train.std(0) @ peer.coef_.T + peer.intercept_
    expected = -np.sort(-log_softmax(level, axis=1), axis=1)
    lists = chosen.fit(data, ENCODER_LR_RNG).recommend(make_prompts(*texts[-2:]), 3, data)
    np.testing.assert_allclose(lists.scores, expected, atol=5e-3)


def blocks(states: AnyArray, order: AnyArray, size: int) -> Iterator[tuple[AnyArray, AnyArray]]:
    for start in range(0, order.size, size):
        rows = order[start : start + size]
        yield rows, states[rows]


def test_the_probe_equals_a_regression_on_standardized_states_in_any_order(
    rng: np.random.Generator,
) -> None:
    classes = rng.integers(0, 3, 60)
    states = rng.normal(classes[:, None] * [1.0, 0.1, 0.0, 0.0], [1, 0.1, 9, 0], (60, 4))
    states[:, 3] = 7.0  # a column that changes in its last digits alone says nothing
    states[::2, 3] += 1e-6
    order = rng.permutation(60)
    probe = fit_probe(
        blocks(states.astype(np.float32), order, 7), classes, 4, strength=0.5, iterations=500
    )
    std = states.std(axis=0)
    z = (states - states.mean(axis=0)) / np.where(std < 1e-5, 1, std)
    reference = LogisticRegression(C=0.5, max_iter=500).fit(z, classes)
    expected = log_softmax(z @ reference.coef_.T + reference.intercept_, axis=1)
    log_probabilities = probe.log_probabilities(states.astype(np.float32))
    np.testing.assert_allclose(log_probabilities[:, :3], expected, atol=2e-3)
    assert np.isneginf(log_probabilities[:, 3]).all()  # nothing is of the last class
    assert np.abs(probe.weights).max() < 100


FEATURES = np.random.default_rng(5).normal(size=(40, 3)).astype(np.float32)


@pytest.mark.parametrize("classes", [[0, 2] * 20, [2] * 40, [0, 1, 2, 3] * 10])
def test_classes_without_rows_have_probability_zero(classes: list[int]) -> None:
    regression = SoftmaxRegression.fit(
        FEATURES, np.array(classes), 4, strength=1.0, iterations=300
    ).log_probabilities(FEATURES)
    assert regression.dtype == np.float32
    present = np.isin(np.arange(4), classes)
    assert np.isneginf(regression[:, ~present]).all()
    assert np.isfinite(regression[:, present]).all()
    np.testing.assert_allclose(np.exp(regression).sum(axis=1), 1, atol=1e-5)


# item 1 has no training row: the classes are the items 0, 2 and 3


# item 2 has no training row: the classes are the items 0, 1, 3 and 4
# u0 has two reviews, of item 0; u1 has one of item 1 and two of item 3; u2 has rows but no
# review; u3 has nothing; u4 has one review of item 4
TRAIN = make_interactions([(0, 0), (1, 1), (1, 3), (2, 0), (4, 4)], n_users=5, n_items=5)
TEXTS = {"even": [0.25, 0.25, 0.25, 0.25], "low": [0.1, 0.2, 0.3, 0.4], "top": [0.8, 0, 0.1, 0.1]}
"""The probabilities of the classes for each text."""

REVIEWS = Reviews(
    np.array([1, 0, 4, 1, 0, 1], dtype=np.int32),
    np.array([3, 0, 4, 1, 0, 3], dtype=np.int32),
    make_texts("low", "even", "top", "even", "low", "low"),
)
USER_REVIEWS_DATA = TrainingData(TRAIN, reviews=REVIEWS)


@dataclass
class Classifier:
    """Knows the probabilities of each text; yields blocks of one or two texts, last first."""

    classified: list[str] = field(default_factory=list)

    def __call__(self, texts: Ids) -> Blocks:
        self.classified += texts.tolist()
        for rows in reversed(np.array_split(np.arange(len(texts)), (len(texts) + 1) // 2)):
            with np.errstate(divide="ignore"):
                logs = np.log([TEXTS[text] for text in texts[rows]])
            yield rows, logs.astype(np.float32)


def recommend(
    queries: Queries,
    k: int,
    data: TrainingData = USER_REVIEWS_DATA,
    *,
    classify: Callable[[Ids], Blocks] | None = None,
) -> RankedLists:
    with collect_warnings():
        return recommend_by_reviews(
            ItemClasses.from_data(data), classify or Classifier(), queries, k, data
        )


def test_items_are_ranked_by_the_mean_log_probability_of_the_reviews() -> None:
    lists = recommend(make_queries(["u0", "u1"], [0, 1]), 3)
    # u0: the mean of "even" and "low", ln √(0.25 p), without item 0:
    #   item 1 ln √0.05, item 3 ln √0.075, item 4 ln √0.1
    # u1: "even" once and "low" twice, ln ∛(0.25 p²), without the items 1 and 3:
    #   item 0 ln ∛0.0025, item 4 ln ∛0.04
    assert lists.items.tolist() == [[4, 3, 1], [4, 0, -1]]
    expected = [
        [np.log(0.1) / 2, np.log(0.075) / 2, np.log(0.05) / 2],
        [np.log(0.04) / 3, np.log(0.0025) / 3, np.nan],
    ]
    np.testing.assert_allclose(lists.scores, expected, rtol=1e-6)


def make_tastes() -> tuple[TrainingData, list[int]]:
    """Return users of two tastes who name it in each review, and the only item they miss."""
    data, missing = make_checkerboard(12)
    noise = np.random.default_rng(2).choice(["good", "bad", "very"], len(data.train))
    tastes = np.where(data.train.users % 2, "soup", "tea")
    texts = make_texts(*(f"the {a} {b}" for a, b in zip(noise, tastes, strict=True)))
    return replace(data, reviews=Reviews(data.train.users, data.train.items, texts)), missing


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_small_encoder(tmp_path_factory.mktemp("encoder")))


def test_language_models_lead_to_the_items_that_users_miss(encoder: str) -> None:
    data, missing = make_tastes()
    common: dict[str, Any] = {"encoder": encoder, "max_length": 16, "device": "cpu"}
    tuned = LMRec(**common, pooling="mean", dropout=0.0, learning_rate=0.01, epochs=8)
    for model in (EncoderLR(**common), replace(tuned, batch_size=12)):
        fitted = model.fit(data, np.random.default_rng(0))
        lists = fitted.recommend(query_all_users(data), 1, data)
        assert lists.items[:, 0].tolist() == missing, type(model).__name__


def test_lists_of_users_fulfil_the_contract_of_recommenders(encoder: str) -> None:
    data, _ = make_tastes()
    check_recommender(TFIDFLR(min_df=1), data=data)
    check_recommender(EncoderLR(encoder=encoder, max_length=16, device="cpu"), data=data)
