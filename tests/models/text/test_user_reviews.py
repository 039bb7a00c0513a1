from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Ids, Reviews, TrainingData
from recbias.core.evidence import RankedLists
from recbias.core.queries import Queries
from recbias.models.lmrec import LMRec
from recbias.models.text import Blocks, ItemClasses, recommend_by_reviews
from recbias.models.text_probes import TFIDFLR, EncoderLR
from recbias.testing import check_recommender
from support.models.recommending import make_checkerboard, query_all_users
from support.models.small_encoder import write_small_encoder
from support.worlds.dishes import make_texts
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

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
DATA = TrainingData(TRAIN, reviews=REVIEWS)


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
    data: TrainingData = DATA,
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


def make_random_world(rng: np.random.Generator) -> tuple[TrainingData, Reviews]:
    """Return 40 users with up to 6 reviews of random texts, and the reviews."""
    pairs = sorted({(int(user), int(item)) for user, item in rng.integers(0, (40, 9), (120, 2))})
    train = make_interactions(pairs, n_users=40, n_items=9)
    chosen = np.sort(rng.permutation(len(pairs))[:90])
    texts = rng.choice(["soup", "tea", "bread", "good", "bad"], (90, 4))
    reviews = Reviews(
        train.users[chosen], train.items[chosen], make_texts(*map(" ".join, texts.tolist()))
    )
    return TrainingData(train, reviews=reviews), reviews


@pytest.mark.usefixtures("stage_warnings")
def test_the_list_of_a_user_does_not_depend_on_the_other_users(rng: np.random.Generator) -> None:
    data, reviews = make_random_world(rng)
    fitted = TFIDFLR(min_df=1).fit(data, rng)
    together = fitted.recommend(query_all_users(data), 5, data)
    assert together.filled.any(axis=1).sum() == np.unique(reviews.users).size
    for size in (1, 7, 30):
        users = rng.permutation(40)[:size].tolist()
        some = fitted.recommend(query_all_users(data, users), 5, data)
        np.testing.assert_array_equal(some.items, together.items[users])
        np.testing.assert_array_equal(some.scores, together.scores[users])
    # nor on what the others have written, once the model is fitted
    rows = np.flatnonzero(reviews.users != reviews.users[0])
    texts = reviews.texts.copy()
    texts[rows] = "good"
    changed = fitted.recommend(
        query_all_users(data), 5, replace(data, reviews=replace(reviews, texts=texts))
    )
    user = reviews.users[0]
    np.testing.assert_array_equal(changed.scores[user], together.scores[user])


@pytest.mark.usefixtures("stage_warnings")
def test_scores_of_users_equal_the_mean_of_the_scores_of_prompts(rng: np.random.Generator) -> None:
    data, reviews = make_random_world(rng)
    fitted = TFIDFLR(min_df=1).fit(data, rng)
    lists = fitted.recommend(query_all_users(data), 9, data)
    logs = np.concatenate([block for _, block in fitted.classify(reviews.texts)])
    classes = ItemClasses.from_data(data)
    for user in np.unique(reviews.users).tolist():
        mean = logs[reviews.users == user].mean(axis=0, dtype=float)
        unseen = ~np.isin(classes.items, data.train.items[data.train.users == user])
        ranks = np.argsort(-mean[unseen], kind="stable")[: np.isfinite(mean[unseen]).sum()]
        listed = lists.filled[user]
        assert lists.items[user][listed].tolist() == classes.items[unseen][ranks].tolist()
        np.testing.assert_allclose(lists.scores[user][listed], mean[unseen][ranks], rtol=1e-5)


def make_tastes() -> tuple[TrainingData, list[int]]:
    """Return users of two tastes who name it in each review, and the only item they miss."""
    data, missing = make_checkerboard(12)
    noise = np.random.default_rng(2).choice(["good", "bad", "very"], len(data.train))
    tastes = np.where(data.train.users % 2, "soup", "tea")
    texts = make_texts(*(f"the {a} {b}" for a, b in zip(noise, tastes, strict=True)))
    return replace(data, reviews=Reviews(data.train.users, data.train.items, texts)), missing


def test_words_of_the_reviews_lead_to_the_items_that_users_miss() -> None:
    data, missing = make_tastes()
    lists = (
        TFIDFLR(min_df=1)
        .fit(data, np.random.default_rng(0))
        .recommend(query_all_users(data), 3, data)
    )
    assert lists.items[:, 0].tolist() == missing


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
